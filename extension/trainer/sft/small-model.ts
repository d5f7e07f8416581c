// The recipe of media/models/ragen-small: a vocabulary trained on transcripts of demonstrated episodes, then a small
// Qwen3 decoder trained on demonstrations of all its environments (supervised warm start). In the last phase, most turns
// are guesses, so the model seldom looks at the state, although it is able to. Reinforcement learning can therefore
// improve the model. All random draws are seeded.
import { RandomStream } from '../../engine/sampling/random-stream';
import { parameterSpecs } from '../../models/decoder/decoder-config';
import { trainedNetwork } from '../../models/decoder/networks';
import { Generator } from '../../models/generation/generator';
import { Policy } from '../../models/policy';
import { HostParameters } from '../../models/weights/parameter-bank';
import { readDecoderConfig, readTokenizer } from '../../models/weights/model-folder';
import { Weights, initialize } from '../../models/weights/weights';
import type { RunConfig } from '../config/schema';
import { loadConfig } from '../config/load-config';
import { installation } from '../../node/installation';
import type { TextGenerator } from '../rollout/rollout-request';
import { trainBpe } from './bpe';
import { Demonstrator } from './demonstrator';
import type { DemonstratorTools } from './demonstrator';
import { fixedTexts } from './fixed-texts';
import { adamOptions, demonstratorTools, playerOf, solverOf, tagOfRow, withEnvironments } from './model-maker';
import { writeModelFiles, writeWeights } from './model-maker';
import type { DemonstratedEnvironments, ModelShape } from './model-maker';
import { addedTokens, codePointStop, codePointTokenizer, codePoints, transcript } from './plain-chat';
import { responses } from './responses/responses';

/** Tags and number of episodes of each in a batch. */
const groups: Readonly<Record<string, number>> = {
  SmallFrozenLake: 3,
  SmallFrozenLake4: 1,
  SmallFrozenLake6: 1,
  SmallSlipperyLake: 2,
  SmallSokoban: 5,
  SmallBandit: 1,
  SmallBanditTest: 1,
  SmallCountdown: 8,
  SmallSudoku: 2,
  Small2048: 2,
  SmallCube1: 1,
  SmallCube: 4,
  SmallCube3: 2,
  SmallShop: 3,
};

/**
 * Probability that a turn looks at the state instead of guessing: in phase `learn` for all environments, in the last
 * phase for each environment, such that validation begins with a success of 20 to 45 %.
 */
const looking = {
  learn: 0.7,
  forget: {
    bandit: 0.2,
    countdown: 0.15,
    frozen_lake: 0.15,
    game_2048: 0.1,
    rubikscube: 0.2,
    sokoban: 0.15,
    sudoku: 0.4,
    webshop: 0.3,
  } as Readonly<Record<string, number>>,
};

/** Most actions of a looking answer on slippery ice, where plans hold for few moves. */
const mostSlipperyActions = 2;
/**
 * The learning rate rises to `highest`, stays there in phase `learn`, and falls linearly to `lowest` in the last phase. No
 * step therefore depends on the number of later steps.
 */
const rates = { warmupSteps: 50, highest: 2e-3, lowest: 1e-4 };

/**
 * Limits of an engine pass. Attention pads the samples of a pass to the longest of them, and their lengths vary from 40
 * to 700 tokens, so several passes over samples of similar length take far less time than one.
 */
const passBudget = { maxTokens: 800, maxRows: 12 };

/**
 * Pieces of which each becomes one token if it is frequent: a shop's products, cells, pairs of a cube's colours, lists of
 * candidates, three cells of a board's row, numbers and words.
 */
const isolate = String.raw`[Bb]0[A-Za-z\d]{8}| ?\(\d, ?\d\)| ?\[[A-Z], [A-Z]\]|(?<=\): )\[[1-4](?:, [1-4])*\]|\[\d\]| \|\| |[#_√OXPS]{3}\n?|,? ?\d{1,2}| ?[A-Za-z]+'?`;
/** Pieces that are never part of a fixed text, because they are the state. */
const variable = String.raw`^(?:[Bb]0[A-Za-z\d]{8}| ?\(\d, ?\d\)| ?\[[A-Z], [A-Z]\]|\[[1-4](?:, [1-4])*\]|\[\d\]|[#_√OXPS]{3}\n?)$`;

const shape: ModelShape = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  torch_dtype: 'float32', // in which servers compute; the stored weights have 16 bits
  hidden_size: 96,
  intermediate_size: 256,
  num_hidden_layers: 3,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  head_dim: 32,
  max_position_embeddings: 4096, // pages of the shop are long
};

export interface SmallModelRequest {
  /** Folder of the new model. */
  folder: string;
  /** First seed of the demonstrations' levels. */
  seed: number;
  /** Number of batches of demonstrations from which the vocabulary is trained. */
  corpusBatches: number;
  /** Maximum number of tokens of the vocabulary. */
  vocabSize: number;
  /** Number of optimizer steps of each phase. */
  steps: { learn: number; forget: number };
  /** The model plays validation episodes, and its weights are written, after each multiple of this number of steps. */
  validateEvery: number;
  /** Number of validation episodes of each tag. */
  validationGroups: number;
  printLine(text: string): void;
}

/** Trains the model and writes its folder. Returns the cross-entropy of each step. */
export async function makeSmallModel(request: SmallModelRequest): Promise<number[]> {
  return withEnvironments(demonstrationConfig(request), request.printLine, async environments => {
    await makeVocabulary(request, environments);
    return trainOnDemonstrations(request, environments);
  });
}

/** Returns the configuration of the demonstrated episodes: the mixture preset with all tags and one episode a group. */
function demonstrationConfig({ seed, validationGroups }: SmallModelRequest): RunConfig {
  const tags = Object.keys(groups);
  const count = Object.values(groups).reduce((a, b) => a + b);
  return loadConfig({
    configName: 'quickstart-mixture',
    overrides: [
      `es_manager.train.env_configs.tags=[${tags.join()}]`,
      `es_manager.train.env_configs.n_groups=[${Object.values(groups).join()}]`,
      `es_manager.train.env_groups=${count}`,
      'es_manager.train.group_size=1',
      `es_manager.val.env_configs.tags=[${tags.join()}]`,
      `es_manager.val.env_configs.n_groups=[${tags.map(() => validationGroups).join()}]`,
      `es_manager.val.env_groups=${validationGroups * tags.length}`,
      `ppo_mini_batch_size=${count}`,
      `micro_batch_size_per_gpu=${count}`,
      'actor_rollout_ref.rollout.rollout_filter_value=1.0',
      'actor_rollout_ref.rollout.rollout_filter_include_zero=True',
      'actor_rollout_ref.rollout.val_kwargs.temperature=1.0',
      `seed.train=${seed}`,
      'actor_rollout_ref.rollout.max_model_len=4000',
      'actor_rollout_ref.rollout.response_length=200',
    ],
    presetFolders: [installation.presets],
    workspace: installation.root,
  }).config;
}

type Phase = 'learn' | 'forget';

/** Returns a demonstrator; its turns look at the state with the probability of `style.phase`, which callers may change. */
function demonstratorOf(
  environments: DemonstratedEnvironments,
  tools: Omit<DemonstratorTools, 'solve'>,
  style: { phase: Phase },
): Demonstrator {
  const { custom_envs, agent_proxy } = environments.config;
  return new Demonstrator(
    { ...tools, solve: solverOf(environments) },
    ({ row, state, plan, stream }) => {
      const { env_type, env_config } = custom_envs[tagOfRow(environments.config, row)];
      const share = style.phase === 'learn' ? looking.learn : looking.forget[env_type];
      const isSlippery = (env_config as { is_slippery?: boolean } | null)?.is_slippery === true;
      const mostActions = isSlippery ? mostSlipperyActions : agent_proxy.max_actions_per_turn;
      return responses[env_type]({ state, plan, looks: stream.uniform() < share, mostActions, stream });
    },
    agent_proxy.action_sep,
  );
}

/** Trains the vocabulary; writes tokenizer, chat template and configuration files. */
async function makeVocabulary(
  { folder, corpusBatches, vocabSize, printLine }: SmallModelRequest,
  environments: DemonstratedEnvironments,
): Promise<void> {
  const style: { phase: Phase } = { phase: 'learn' };
  const demonstrator = demonstratorOf(environments, { ...codePoints, stopTokenId: codePointStop }, style);
  const proxy = playerOf(environments, demonstrator, codePointTokenizer, [codePointStop], 40_000);
  const corpus: string[] = [];
  const prompts: Record<string, string[][]> = {};
  const solved = { learn: new Map<string, number[]>(), forget: new Map<string, number[]>() };
  for (let batch = 0; batch < corpusBatches; batch++) {
    style.phase = batch % 2 === 0 ? 'learn' : 'forget';
    const { episodes } = await proxy.rollout({ mode: 'train', step: batch, environments: environments.loaded });
    for (const { messages, tag, success } of episodes) {
      corpus.push(transcript(messages));
      const shown = messages
        .filter(({ role }) => role !== 'assistant')
        .map(({ role, content }) => `${role}\n${content}`);
      (prompts[tag] ??= []).push(shown);
      const list = solved[style.phase].get(tag) ?? [];
      solved[style.phase].set(tag, [...list, Number(success)]);
    }
  }
  const fixed = fixedTexts(Object.values(prompts), { isolate, variable });
  const tokenizer = trainBpe(corpus, {
    vocabSize,
    isolate,
    added: [...fixed.map(content => ({ content, special: false })), ...addedTokens],
    minFrequency: 3,
  });
  const tokens = writeModelFiles(folder, tokenizer, shape);
  printLine(`vocabulary: ${tokens} tokens, of which ${fixed.length} are fixed texts of prompts`);
  const encoder = readTokenizer(folder);
  for (const tag of Object.keys(prompts)) {
    const texts = corpus.filter((_, i) => tagAt(environments.config, i) === tag);
    const length = texts.reduce((sum, text) => sum + encoder.encode(text).length, 0) / texts.length;
    const share = (phase: Phase): string => {
      const list = solved[phase].get(tag) ?? [];
      return `${((100 * list.reduce((a, b) => a + b, 0)) / list.length).toFixed(0)} %`;
    };
    printLine(
      `  ${tag}: ${texts.length} episodes of ${length.toFixed(0)} tokens; success ${share('learn')} while learning, ${share('forget')} at last`,
    );
  }
}

/** Returns the tag of the transcript at an index of the corpus. */
function tagAt({ es_manager }: RunConfig, index: number): string {
  const { tags, n_groups } = es_manager.train.env_configs;
  const all = tags.flatMap((tag, i) => new Array<string>(n_groups[i]).fill(tag));
  return all[index % all.length];
}

/** Trains the weights on demonstrations and writes them. Returns the cross-entropy of each step. */
async function trainOnDemonstrations(
  { folder, seed, steps, validateEvery, printLine }: SmallModelRequest,
  environments: DemonstratedEnvironments,
): Promise<number[]> {
  const tokenizer = readTokenizer(folder);
  const decoder = readDecoderConfig(folder);
  const weights = new Weights(parameterSpecs(decoder));
  initialize(weights, new RandomStream(seed), 0.04);
  const session = { threads: 1 };
  const network = trainedNetwork(decoder);
  const bank = new HostParameters(weights, session);
  const policy = new Policy(network, bank, session);
  const generator = new Generator(network, bank, session);
  printLine(`model: ${weights.count} parameters`);

  const tools = demonstratorTools(tokenizer);
  const style: { phase: Phase } = { phase: 'learn' };
  const demonstrator = demonstratorOf(environments, tools, style);
  const demonstrations = playerOf(environments, demonstrator, tokenizer, [tools.stopTokenId], 4000);
  const sampler: TextGenerator = {
    generate: (rows, sampling) => generator.generate(rows, sampling),
    release: rows => generator.release(rows),
  };
  const own = playerOf(environments, sampler, tokenizer, [...tokenizer.stopTokenIds], 2000);
  const losses: number[] = [];
  let tokens = 0;
  for (let step = 1; step <= steps.learn + steps.forget; step++) {
    style.phase = step <= steps.learn ? 'learn' : 'forget';
    const { episodes } = await demonstrations.rollout({ mode: 'train', step, environments: environments.loaded });
    const lr = rateOf(step, steps);
    const samples = episodes.flatMap(episode => episode.samples);
    tokens += samples.reduce((sum, { ids }) => sum + ids.length, 0);
    losses.push(await policy.trainSupervised(samples, passBudget, { lr, ...adamOptions }));
    if (step % 25 === 0) {
      const recent = losses.slice(-25);
      printLine(`step ${step}: cross-entropy ${(recent.reduce((a, b) => a + b) / 25).toFixed(4)}, ${tokens} tokens`);
    }
    if (step % validateEvery !== 0 && step !== steps.learn + steps.forget) continue;
    await writeWeights(folder, weights, 'BF16');
    const { metrics } = await own.rollout({ mode: 'val', step, environments: environments.loaded });
    const shares = Object.keys(groups).map(tag => `${tag} ${(100 * metrics[`${tag}/success`]).toFixed(0)} %`);
    printLine(`  own rollouts: ${shares.join(', ')}; length ${metrics.response_length.toFixed(1)}`);
  }
  return losses;
}

/** Returns the learning rate of a step, which counts from 1. */
function rateOf(step: number, steps: SmallModelRequest['steps']): number {
  const { warmupSteps, highest, lowest } = rates;
  if (step <= steps.learn) return highest * Math.min(1, step / warmupSteps);
  return highest + ((lowest - highest) * (step - steps.learn)) / steps.forget;
}
