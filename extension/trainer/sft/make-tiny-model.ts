// Creates media/models/ragen-tiny; started with `npm run make:tiny-model`. Trains a vocabulary on transcripts of
// demonstrated episodes, then a small Qwen2 decoder on demonstrations (supervised warm start). In the last phase the
// demonstrator guesses in most turns. The resulting model is able to read the state and to reason about it, but rarely
// does so. Reinforcement learning can therefore improve the model. All random draws are seeded.
import { join } from 'node:path';
import { cpus } from 'node:os';
import { learningRate } from '../../algorithms/learning-rate';
import { loadConfig } from '../config/load-config';
import { RandomStream } from '../../engine/sampling/random-stream';
import { installation } from '../../node/installation';
import { parameterSpecs } from '../../models/decoder/decoder-config';
import { Generator } from '../../models/generation/generator';
import { readDecoderConfig, readTokenizer } from '../../models/weights/model-folder';
import { trainedNetwork } from '../../models/decoder/networks';
import { HostParameters } from '../../models/weights/parameter-bank';
import { Policy } from '../../models/policy';
import { Weights, initialize } from '../../models/weights/weights';
import type { TextGenerator } from '../rollout/rollout-request';
import { appendAll } from '../../common/lists';
import { trainBpe } from './bpe';
import { demonstrate } from './demonstrated-response';
import { Demonstrator } from './demonstrator';
import type { DemonstratedTurn, DemonstratorTools } from './demonstrator';
import { adamOptions, demonstratorTools, playerOf, solverOf, unlimitedPass, withEnvironments } from './model-maker';
import { writeModelFiles, writeWeights } from './model-maker';
import type { DemonstratedEnvironments } from './model-maker';
import { addedTokens, codePointStop, codePointTokenizer, codePoints, transcript } from './plain-chat';

/** First seed of the demonstrations' levels, far above the seeds of training (10000…) and validation (123…). */
const firstSeed = 50_000_000;
const steps = { learn: 1000, forget: 120 };
const rates = { learn: 2e-3, forget: 5e-4 };
/**
 * Probability of style `looking` in each phase. In phase `learn`, the model learns style `looking`. In phase `forget`,
 * the demonstrator mostly guesses, so the model's probability of this style falls.
 */
const looking = { learn: 0.9, forget: 0.15 };
const folder = process.env.TINY_MODEL_FOLDER ?? join(installation.models, 'ragen-tiny');
const tags = ['QuickFrozenLake', 'CoordFrozenLake', 'CoordSokoban', 'Bandit'];
const groups = [13, 1, 1, 1];
const vocabSize = 800;
const shape = {
  architectures: ['Qwen2ForCausalLM'],
  model_type: 'qwen2',
  torch_dtype: 'float32',
  hidden_size: 96,
  intermediate_size: 256,
  num_hidden_layers: 3,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  head_dim: 32,
  max_position_embeddings: 2048,
};

const printLine = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  const { config } = loadConfig({
    configName: 'quickstart',
    overrides: [
      `es_manager.train.env_configs.tags=[${tags.join()}]`,
      `es_manager.train.env_configs.n_groups=[${groups.join()}]`,
      `es_manager.train.env_groups=${groups.reduce((a, b) => a + b)}`,
      'es_manager.train.group_size=1',
      'es_manager.val.env_groups=256',
      'ppo_mini_batch_size=16',
      'micro_batch_size_per_gpu=16',
      'actor_rollout_ref.rollout.rollout_filter_value=1.0',
      'actor_rollout_ref.rollout.rollout_filter_include_zero=True',
      `seed.train=${firstSeed}`,
      'actor_rollout_ref.rollout.max_model_len=4000',
      'actor_rollout_ref.rollout.response_length=200',
    ],
    presetFolders: [installation.presets],
    workspace: installation.root,
  });
  await withEnvironments(config, printLine, async environments => {
    await makeVocabulary(environments);
    await trainOnDemonstrations(environments);
  });
}

/** Trains the vocabulary; writes tokenizer, chat template and configuration files. */
async function makeVocabulary(environments: DemonstratedEnvironments): Promise<void> {
  const style = { looking: looking.learn };
  const demonstrator = demonstratorOf(environments, { ...codePoints, stopTokenId: codePointStop }, style);
  const proxy = playerOf(environments, demonstrator, codePointTokenizer, [codePointStop], 40_000);
  const corpus: string[] = [];
  for (let batch = 0; batch < 24; batch++) {
    style.looking = batch % 2 === 0 ? looking.learn : looking.forget;
    const { episodes } = await proxy.rollout({ mode: 'train', step: batch, environments: environments.loaded });
    appendAll(
      corpus,
      episodes.map(({ messages }) => transcript(messages)),
    );
  }
  const tokenizer = trainBpe(corpus, {
    vocabSize,
    isolate: String.raw`\d|[_#√]|[OPGXS](?=[_#√OPGXS\n])| \|\| `,
    added: addedTokens,
    minFrequency: 4,
  });
  const tokens = writeModelFiles(folder, tokenizer, shape);
  const ids = readTokenizer(folder).encode(corpus[0]);
  printLine(`vocabulary: ${tokens} tokens; an episode of ${corpus[0].length} characters is ${ids.length} tokens`);
}

/** Trains the weights on demonstrations and writes them. */
async function trainOnDemonstrations(environments: DemonstratedEnvironments): Promise<void> {
  const tokenizer = readTokenizer(folder);
  const decoder = readDecoderConfig(folder);
  const weights = new Weights(parameterSpecs(decoder));
  initialize(weights, new RandomStream(firstSeed), 0.04);
  const session = { threads: Math.min(2, cpus().length) };
  const network = trainedNetwork(decoder);
  const bank = new HostParameters(weights, session);
  const policy = new Policy(network, bank, session);
  const generator = new Generator(network, bank, session);
  printLine(`model: ${weights.count} parameters`);

  const tools = demonstratorTools(tokenizer);
  const style = { looking: looking.learn };
  const demonstrator = demonstratorOf(environments, tools, style);
  const demonstrations = playerOf(environments, demonstrator, tokenizer, [tools.stopTokenId], 4000);
  const sampler: TextGenerator = {
    generate: (rows, sampling) => generator.generate(rows, sampling),
    release: rows => generator.release(rows),
  };
  const own = playerOf(environments, sampler, tokenizer, tokenizer.stopTokenIds, 2000);
  const schedule = {
    lr: rates.learn,
    lr_warmup_steps: 30,
    lr_scheduler_type: 'cosine',
    total_training_steps: steps.learn,
  } as const;
  let smoothed = NaN;
  for (let step = 1; step <= steps.learn + steps.forget; step++) {
    const learning = step <= steps.learn;
    style.looking = learning ? looking.learn : looking.forget;
    const { episodes } = await demonstrations.rollout({ mode: 'train', step, environments: environments.loaded });
    const lr = learning ? learningRate(step, schedule) : rates.forget;
    const samples = episodes.flatMap(episode => episode.samples);
    const loss = await policy.trainSupervised(samples, unlimitedPass, { lr, ...adamOptions });
    smoothed = Number.isNaN(smoothed) ? loss : 0.97 * smoothed + 0.03 * loss;
    if (step % 50 === 0) printLine(`step ${step}: cross-entropy ${smoothed.toFixed(4)}`);
    if (step % 200 === 0 || step === steps.learn + steps.forget) {
      const { metrics } = await own.rollout({ mode: 'val', step, environments: environments.loaded });
      printLine(
        `  own rollouts: success ${metrics['QuickFrozenLake/success'].toFixed(3)}, length ${metrics.response_length.toFixed(1)}`,
      );
      await writeWeights(folder, weights, 'F32');
    }
  }
}

/** Returns a demonstrator whose turns look at the state with probability `style.looking`, which callers may change. */
function demonstratorOf(
  environments: DemonstratedEnvironments,
  tools: Omit<DemonstratorTools, 'solve'>,
  style: { looking: number },
): Demonstrator {
  const respond = ({ state, plan, stream }: DemonstratedTurn) => {
    const manner = stream.uniform() < style.looking ? 'looking' : 'guessing';
    return demonstrate(state, plan, manner, 2, stream) ?? demonstrate(state, plan, 'guessing', 2, stream);
  };
  return new Demonstrator({ ...tools, solve: solverOf(environments) }, respond, '||');
}

main().catch((error: Error) => {
  printLine(error.stack ?? error.message);
  process.exitCode = 1;
});
