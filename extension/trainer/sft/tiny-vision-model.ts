// Makes a small model that sees, such as media/models/ragen-tiny-vision (vision-recipes.ts): a vocabulary trained on
// transcripts of demonstrated episodes, then a small vision encoder and decoder of the form of Qwen2.5-VL or Qwen3-VL, trained together
// on (picture → thought and answer). The demonstrator reads the true state; the model sees only the picture. In the last
// phase, most turns are guesses, so the model seldom looks at the picture, although it is able to. Reinforcement learning
// can therefore improve the model. All random draws are seeded.
import { join } from 'node:path';
import { RandomStream } from '../../engine/sampling/random-stream';
import { unwatched } from '../../engine/work-units';
import { parameterSpecs } from '../../models/decoder/decoder-config';
import type { ParameterSpec } from '../../models/decoder/decoder-config';
import { trainedNetwork } from '../../models/decoder/networks';
import { Generator } from '../../models/generation/generator';
import { Policy } from '../../models/policy';
import { encoderSpecs } from '../../models/vision/encoder-config';
import { PictureEncoder } from '../../models/vision/picture-encoder';
import { readProcessorOptions } from '../../models/vision/processor-folder';
import { parseVisionConfig } from '../../models/vision/vision-config';
import { readJson } from '../../models/weights/folder-json';
import { HostParameters } from '../../models/weights/parameter-bank';
import { readTokenizer } from '../../models/weights/model-folder';
import { Weights, initialize } from '../../models/weights/weights';
import { installation } from '../../node/installation';
import { plainMark } from '../../common/picture-mark';
import type { RunConfig } from '../config/schema';
import { loadConfig } from '../config/load-config';
import type { RolloutBatch } from '../rollout/rollout-batch';
import type { TextGenerator } from '../rollout/rollout-request';
import { trainBpe } from './bpe';
import { demonstrate } from './demonstrated-response';
import { Demonstrator } from './demonstrator';
import type { DemonstratedTurn, DemonstratorTools } from './demonstrator';
import { fixedTexts } from './fixed-texts';
import { adamOptions, demonstratorTools, playerOf, solverOf, withEnvironments } from './model-maker';
import { writeModelFiles, writeWeights } from './model-maker';
import type { DemonstratedEnvironments, ModelShape } from './model-maker';
import { addedTokens, codePointStop, codePointTokenizer, codePoints, pictureTokens, transcript } from './plain-chat';
import { ShownPictures } from './shown-pictures';
import { StatedEnvironments } from './stated-environments';
import { namesPositions, visionClasses, visionShape } from './vision-recipes';
import type { VisionForm, VisionRecipe } from './vision-recipes';

/** Number of demonstrated episodes of a step. */
const episodesPerStep = 8;
/** Probability of style `looking` in each phase. */
const looking = { learn: 0.9, forget: 0.15 };
/**
 * The learning rate rises to `highest`, stays there in phase `learn`, and falls linearly to `lowest` in the last phase. No
 * step therefore depends on the number of later steps.
 */
const rates = { warmupSteps: 50, highest: 2e-3, lowest: 2e-4 };
/** Limits of an engine pass (small-model.ts). */
const passBudget = { maxTokens: 800, maxRows: 12 };

/** Pieces of which each becomes one token if it is frequent: a cell's row, its column, numbers and words. */
const isolate = String.raw`${plainMark}| ?\(\d|, ?\d\)| \|\| | ?\d| ?[A-Za-z]+'?`;
/** Pieces that are never part of a fixed text, because they are the state. */
const variable = String.raw`^(?:${plainMark}| ?\(\d|, ?\d\))$`;

const sizes: Omit<ModelShape, 'architectures' | 'model_type'> = {
  torch_dtype: 'bfloat16',
  hidden_size: 96,
  intermediate_size: 256,
  num_hidden_layers: 3,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  head_dim: 32,
  max_position_embeddings: 2048,
};
/** Deviation of the decoder's initial weights. */
const deviation = 0.04;

export interface TinyVisionModelRequest {
  recipe: VisionRecipe;
  /** Folder of the new model. */
  folder: string;
  /** First seed of the demonstrations' levels. */
  seed: number;
  /** Number of batches of demonstrations from which the vocabulary is trained. */
  corpusBatches: number;
  /** Number of optimizer steps of each phase; by default those of the recipe. */
  steps?: VisionRecipe['steps'];
  /** The model plays validation episodes, and its weights are written, after each multiple of this number of steps. */
  validateEvery: number;
  /** Number of validation episodes. */
  validationGroups: number;
  printLine(text: string): void;
}

/** Trains the model and writes its folder. Returns the cross-entropy of each step. */
export async function makeTinyVisionModel(request: TinyVisionModelRequest): Promise<number[]> {
  return withEnvironments(demonstrationConfig(request), request.printLine, async environments => {
    await makeVocabulary(request, environments);
    return trainOnDemonstrations(request, environments);
  });
}

function demonstrationConfig({ recipe, seed, validationGroups }: TinyVisionModelRequest): RunConfig {
  return loadConfig({
    configName: recipe.preset,
    overrides: [
      `es_manager.train.env_configs.n_groups=[${episodesPerStep}]`,
      `es_manager.train.env_groups=${episodesPerStep}`,
      'es_manager.train.group_size=1',
      `es_manager.val.env_configs.n_groups=[${validationGroups}]`,
      `es_manager.val.env_groups=${validationGroups}`,
      `ppo_mini_batch_size=${episodesPerStep}`,
      `micro_batch_size_per_gpu=${episodesPerStep}`,
      'actor_rollout_ref.rollout.rollout_filter_value=1.0',
      'actor_rollout_ref.rollout.rollout_filter_include_zero=True',
      `seed.train=${seed}`,
      'actor_rollout_ref.rollout.max_model_len=4000',
      'actor_rollout_ref.rollout.response_length=200',
    ],
    presetFolders: [join(installation.root, 'examples/config'), installation.presets],
    workspace: installation.root,
  }).config;
}

/** Returns a demonstrator and its environments; its turns look with probability `style.looking`, which callers may change. */
function demonstratorOf(
  environments: DemonstratedEnvironments,
  tools: Omit<DemonstratorTools, 'solve'>,
  style: { looking: number },
): { demonstrator: Demonstrator; pool: StatedEnvironments } {
  const { max_actions_per_turn, action_sep } = environments.config.agent_proxy;
  const pool = new StatedEnvironments(environments.pool);
  const respond = ({ row, plan, stream }: DemonstratedTurn) => {
    const looks = stream.uniform() < style.looking && plan.length > 0; // a room with a stuck box has no plan
    const manner = looks ? 'looking' : 'guessing';
    return demonstrate(pool.stateOf(row) ?? '', plan, manner, max_actions_per_turn, stream);
  };
  return { demonstrator: new Demonstrator({ ...tools, solve: solverOf(environments) }, respond, action_sep), pool };
}

/** Trains the vocabulary; writes tokenizer, chat template and configuration files. */
async function makeVocabulary(
  { recipe, folder, corpusBatches, printLine }: TinyVisionModelRequest,
  environments: DemonstratedEnvironments,
): Promise<void> {
  const style = { looking: looking.learn };
  const tools = { ...codePoints, stopTokenId: codePointStop };
  const { demonstrator, pool } = demonstratorOf(environments, tools, style);
  const pictures = { admit: async () => [] }; // the transcripts have the marks of pictures
  const { config, loaded } = environments;
  const proxy = playerOf({ config, pool }, demonstrator, codePointTokenizer, [codePointStop], 40_000, pictures);
  const corpus: string[] = [];
  const prompts: string[][] = [];
  for (let batch = 0; batch < corpusBatches; batch++) {
    style.looking = batch % 2 === 0 ? looking.learn : looking.forget;
    const { episodes } = await proxy.rollout({ mode: 'train', step: batch, environments: loaded });
    for (const { messages } of episodes) {
      corpus.push(transcript(messages));
      const shown = messages.filter(({ role }) => role !== 'assistant');
      prompts.push(shown.map(({ role, content }) => `${role}\n${content}`));
    }
  }
  const fixed = fixedTexts([prompts], { isolate, variable });
  const tokenizer = trainBpe(corpus, {
    vocabSize: 600,
    isolate,
    added: [...fixed.map(content => ({ content, special: false })), ...addedTokens, ...pictureTokens],
    minFrequency: 3,
  });
  const shape = { architectures: [visionClasses[recipe.form]], model_type: recipe.form, ...sizes };
  const tokens = writeModelFiles(folder, tokenizer, shape, visionShape(recipe, shape.hidden_size));
  const lengths = corpus.map(text => readTokenizer(folder).encode(text).length);
  const mean = lengths.reduce((a, b) => a + b) / lengths.length;
  printLine(
    `vocabulary: ${tokens} tokens, of which ${fixed.length} are fixed texts of prompts; an episode has ${mean.toFixed(0)} tokens besides pictures`,
  );
}

/** Trains the weights on demonstrations and writes them. Returns the cross-entropy of each step. */
async function trainOnDemonstrations(
  { recipe, folder, seed, steps = recipe.steps, validateEvery, printLine }: TinyVisionModelRequest,
  environments: DemonstratedEnvironments,
): Promise<number[]> {
  const tokenizer = readTokenizer(folder);
  const visionConfig = parseVisionConfig(readJson(folder, 'config.json'), folder);
  const { decoder, encoder } = visionConfig;
  const specs = { decoder: parameterSpecs(decoder), encoder: encoderSpecs(encoder) };
  const weights = new Weights([...specs.decoder, ...specs.encoder]);
  initializeAll(weights, specs.encoder, recipe.form, new RandomStream(seed));
  const session = { threads: 1 };
  const bank = new HostParameters(weights, session);
  const network = trainedNetwork(decoder);
  const policy = new Policy(network, bank, session);
  const generator = new Generator(network, bank, session);
  const encoderNetwork = {
    config: encoder,
    plan: { specs: specs.encoder, source: () => ({ kind: 'input' }) as const },
  };
  const eyes = new PictureEncoder(encoderNetwork, bank, session);
  const processor = readProcessorOptions(folder, encoder);
  if (processor.kind !== 'patches') throw new Error(`${folder}: the image processor makes no patches`);
  const pictures = new ShownPictures(visionConfig, processor, eyes);
  printLine(`model: ${weights.count} parameters`);

  const style = { looking: looking.learn };
  const tools = demonstratorTools(tokenizer);
  const { config, loaded } = environments;
  const { demonstrator, pool } = demonstratorOf(environments, tools, style);
  const demonstrations = playerOf({ config, pool }, demonstrator, tokenizer, [tools.stopTokenId], 4000, pictures);
  const sampler: TextGenerator = {
    generate: async (rows, sampling) => {
      const shown = await pictures.ofRows(
        rows.map(({ append, shows }) => ({ ids: append, shows })),
        rows.map(({ row }) => generator.nextPosition(row)),
      );
      const given = rows.map((row, i) => ({ ...row, pictures: shown[i] }));
      const answers = await generator.generate(given, sampling);
      for (const { row, ids } of answers) count(looks, recipe, tokenizer.decode(ids), seen.stateOf(row) ?? '');
      return answers;
    },
    release: rows => generator.release(rows),
  };
  const seen = new StatedEnvironments(environments.pool);
  let looks: Looks = { turns: 0, looking: 0, right: 0 };
  const own = playerOf({ config, pool: seen }, sampler, tokenizer, [...tokenizer.stopTokenIds], 2000, pictures);
  const losses: number[] = [];
  const total = steps.learn + steps.forget;
  const demonstrated = (step: number): Promise<RolloutBatch> => {
    style.looking = step <= steps.learn ? looking.learn : looking.forget;
    const rollout = demonstrations.rollout({ mode: 'train', step, environments: loaded });
    rollout.catch(() => undefined); // thrown where it is awaited
    return rollout;
  };
  let next = demonstrated(1);
  for (let step = 1; step <= total; step++) {
    const { episodes } = await next;
    if (step < total) next = demonstrated(step + 1); // played while the model is trained
    const { samples, images } = await pictures.ofSamples(episodes.flatMap(episode => episode.samples));
    const optimizer = { lr: rateOf(step, steps), ...adamOptions };
    losses.push(await policy.trainSupervised(samples, passBudget, optimizer, 0, unwatched, images));
    if (step % 25 === 0) {
      const recent = losses.slice(-25);
      printLine(`step ${step}: cross-entropy ${(recent.reduce((a, b) => a + b) / 25).toFixed(4)}`);
    }
    if (step % validateEvery !== 0 && step !== total) continue;
    await writeWeights(folder, weights, 'BF16');
    looks = { turns: 0, looking: 0, right: 0 };
    const { metrics } = await own.rollout({ mode: 'val', step, environments: loaded });
    printLine(
      `  own rollouts: success ${percent(metrics[`${recipe.tag}/success`])}; ${percent(looks.looking / looks.turns)} of the turns name cells, ${percent(looks.right / looks.looking)} of these the right ones`,
    );
  }
  return losses;
}

/**
 * Initialises the weights. The encoder's matrices preserve the scale of their inputs, and learned positions are as large as
 * patches; otherwise features hardly depend on the picture, and the decoder learns to ignore them. Qwen2.5-VL has no learned
 * positions, and no norms of queries and keys: the decoder knows where a tile is by rotations alone, so its queries and
 * keys, with their biases, have the scale of their inputs from the start; with small ones it learns this much later.
 */
function initializeAll(
  weights: Weights,
  encoder: readonly ParameterSpec[],
  form: VisionForm,
  stream: RandomStream,
): void {
  initialize(weights, stream, deviation);
  const ofEncoder = new Set(encoder.map(({ name }) => name));
  for (const { name, dims } of weights.specs) {
    const isRotated = form === 'qwen2_5_vl' && /self_attn\.[qk]_proj/.test(name);
    const view = weights.view(name);
    if (dims.length === 1) {
      if (isRotated) for (let i = 0; i < view.length; i++) view[i] = stream.normal();
    } else if (isRotated || ofEncoder.has(name)) {
      const wanted = name === 'visual.pos_embed.weight' ? 1 : dims[1] ** -0.5;
      for (let i = 0; i < view.length; i++) view[i] *= wanted / deviation;
    }
  }
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** Numbers of turns: all, those whose thoughts name positions, and those that name the right ones. */
interface Looks {
  turns: number;
  looking: number;
  right: number;
}

/** Counts a turn; `state` is the true state as text. */
function count(looks: Looks, recipe: VisionRecipe, answer: string, state: string): void {
  looks.turns++;
  const isRight = namesPositions(recipe, answer, state);
  if (isRight !== undefined) looks.looking++;
  if (isRight) looks.right++;
}

/** Returns the learning rate of a step, which counts from 1. */
function rateOf(step: number, steps: VisionRecipe['steps']): number {
  const { warmupSteps, highest, lowest } = rates;
  if (step <= steps.learn) return highest * Math.min(1, step / warmupSteps);
  return highest + ((lowest - highest) * (step - steps.learn)) / steps.forget;
}
