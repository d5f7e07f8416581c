// Creates media/models/ragen-tiny; started with `npm run make:tiny-model`. Trains a vocabulary on transcripts of
// demonstrated episodes, then a small Qwen2 decoder on demonstrations (supervised warm start). In the last phase the
// demonstrator guesses in most turns. The resulting model is able to read the state and to reason about it, but rarely
// does so. Reinforcement learning can therefore improve the model. All random draws are seeded.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpus } from 'node:os';
import { learningRate } from '../../algorithms/learning-rate';
import { loadConfig } from '../config/load-config';
import type { RunConfig } from '../config/schema';
import { RandomStream } from '../../engine/sampling/random-stream';
import { installation } from '../../node/installation';
import { parameterSpecs, parseDecoderConfig } from '../../models/decoder/decoder-config';
import { Generator } from '../../models/generation/generator';
import { readTokenizer } from '../../models/weights/model-folder';
import { trainedNetwork } from '../../models/decoder/networks';
import { HostParameters } from '../../models/weights/parameter-bank';
import { Policy } from '../../models/policy';
import { Weights, initialize } from '../../models/weights/weights';
import { AgentProxy } from '../rollout/agent-proxy';
import type { TextGenerator } from '../rollout/rollout-request';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';
import { EnvironmentProcess } from '../../environments/client/environment-process';
import { environmentSpecs } from '../../environments/client/environment-specs';
import { environmentVariables } from '../../environments/client/environment-variables';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';
import { readRegularSync } from '../../node/regular-file';
import { writeSafetensors } from '../../models/weights/safetensors-writer';
import { trainBpe } from './bpe';
import { Demonstrator } from './demonstrator';
import { addedTokens, chatTemplate, codePointStop, codePointTokenizer, codePoints, transcript } from './plain-chat';

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
  hidden_size: 96,
  intermediate_size: 256,
  num_hidden_layers: 3,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  head_dim: 32,
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
  const specs = environmentSpecs(tags, config.custom_envs, installation.environments, installation.root);
  const pool = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    variables: environmentVariables(specs, installation.environments),
    stepTimeoutMs: 10_000,
    onNotice: notice => printLine(`${notice.tag}: ${notice.text}`),
  });
  try {
    const { environments, error } = await pool.load(specs);
    if (error) throw new Error(error.message);
    await makeVocabulary(config, pool, environments);
    await trainOnDemonstrations(config, pool, environments);
  } finally {
    await pool.stop();
  }
}

/** Trains the vocabulary; writes tokenizer, chat template and configuration files. */
async function makeVocabulary(
  config: RunConfig,
  pool: EnvironmentProcess,
  environments: LoadedEnvironment[],
): Promise<void> {
  const demonstrator = demonstratorOf(pool, environments, { ...codePoints, stopTokenId: codePointStop });
  const proxy = proxyOf(config, pool, demonstrator, codePointTokenizer, [codePointStop], 40_000);
  const corpus: string[] = [];
  for (let batch = 0; batch < 24; batch++) {
    demonstrator.options.looking = batch % 2 === 0 ? looking.learn : looking.forget;
    const { episodes } = await proxy.rollout({ mode: 'train', step: batch, environments });
    appendAll(
      corpus,
      episodes.map(({ messages }) => transcript(messages)),
    );
  }
  mkdirSync(folder, { recursive: true });
  const write = (name: string, content: object | string): void =>
    writeFileSync(join(folder, name), typeof content === 'string' ? content : `${JSON.stringify(content, null, 1)}\n`);
  const tokenizer = trainBpe(corpus, {
    vocabSize,
    isolate: String.raw`\d|[_#√]|[OPGXS](?=[_#√OPGXS\n])| \|\| `,
    added: addedTokens,
    minFrequency: 4,
  });
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    clean_up_tokenization_spaces: false,
    model_max_length: 2048,
  });
  write('chat_template.jinja', chatTemplate);
  const { added_tokens: added, model } = tokenizer as {
    added_tokens: { id: number; content: string }[];
    model: { vocab: object };
  };
  const idOf = (content: string): number => added.find(token => token.content === content)!.id;
  const eos = idOf('<|im_end|>');
  write('config.json', {
    architectures: ['Qwen2ForCausalLM'],
    model_type: 'qwen2',
    vocab_size: Object.keys(model.vocab).length + added.length,
    ...shape,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    hidden_act: 'silu',
    torch_dtype: 'float32',
    eos_token_id: eos,
    pad_token_id: idOf('<|endoftext|>'),
  });
  write('generation_config.json', { eos_token_id: [eos, idOf('<|endoftext|>')], pad_token_id: idOf('<|endoftext|>') });
  const ids = readTokenizer(folder).encode(corpus[0]);
  printLine(
    `vocabulary: ${Object.keys(model.vocab).length + added.length} tokens; an episode of ${corpus[0].length} characters is ${ids.length} tokens`,
  );
}

/** Limits of an engine pass: none, because a batch of short demonstrations always fits into one pass. */
const unlimitedPass = { maxTokens: Infinity, maxRows: Infinity };

/** Trains the weights on demonstrations and writes them. */
async function trainOnDemonstrations(
  config: RunConfig,
  pool: EnvironmentProcess,
  environments: LoadedEnvironment[],
): Promise<void> {
  const tokenizer = readTokenizer(folder);
  const decoder = parseDecoderConfig(
    JSON.parse(readRegularSync(join(folder, 'config.json')).toString('utf8')),
    'config.json',
  );
  const weights = new Weights(parameterSpecs(decoder));
  initialize(weights, new RandomStream(firstSeed), 0.04);
  const session = { threads: Math.min(2, cpus().length) };
  const network = trainedNetwork(decoder);
  const bank = new HostParameters(weights, session);
  const policy = new Policy(network, bank, session);
  const generator = new Generator(network, bank, session);
  printLine(`model: ${weights.count} parameters`);

  const stopTokenId = tokenizer.stopTokenIds[0];
  const tools = {
    encode: (text: string) => tokenizer.encode(text),
    decode: (ids: readonly number[]) => tokenizer.decode(ids),
    stopTokenId,
  };
  const demonstrator = demonstratorOf(pool, environments, tools);
  const demonstrations = proxyOf(config, pool, demonstrator, tokenizer, [stopTokenId], 4000);
  const sampler: TextGenerator = {
    generate: (rows, sampling) => generator.generate(rows, sampling),
    release: rows => generator.release(rows),
  };
  const own = proxyOf(config, pool, sampler, tokenizer, tokenizer.stopTokenIds, 2000);
  const schedule = {
    lr: rates.learn,
    lr_warmup_steps: 30,
    lr_scheduler_type: 'cosine',
    total_training_steps: steps.learn,
  } as const;
  let smoothed = NaN;
  for (let step = 1; step <= steps.learn + steps.forget; step++) {
    const learning = step <= steps.learn;
    demonstrator.options.looking = learning ? looking.learn : looking.forget;
    const { episodes } = await demonstrations.rollout({ mode: 'train', step, environments });
    const lr = learning ? learningRate(step, schedule) : rates.forget;
    const samples = episodes.flatMap(episode => episode.samples);
    const loss = await policy.trainSupervised(samples, unlimitedPass, {
      lr,
      betas: [0.9, 0.98],
      eps: 1e-8,
      weight_decay: 0.01,
      grad_clip: 1,
    });
    smoothed = Number.isNaN(smoothed) ? loss : 0.97 * smoothed + 0.03 * loss;
    if (step % 50 === 0) printLine(`step ${step}: cross-entropy ${smoothed.toFixed(4)}`);
    if (step % 200 === 0 || step === steps.learn + steps.forget) {
      const { metrics } = await own.rollout({ mode: 'val', step, environments });
      printLine(
        `  own rollouts: success ${metrics['QuickFrozenLake/success'].toFixed(3)}, length ${metrics.response_length.toFixed(1)}`,
      );
      await save(weights);
    }
  }
}

async function save(weights: Weights): Promise<void> {
  const tensors = weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) }));
  await writeSafetensors(join(folder, 'model.safetensors'), tensors);
}

function demonstratorOf(
  pool: EnvironmentProcess,
  environments: readonly LoadedEnvironment[],
  tools: { encode(text: string): number[]; decode(ids: readonly number[]): string; stopTokenId: number },
): Demonstrator {
  return new Demonstrator(
    {
      ...tools,
      solve: async rows => {
        const solutions = await pool.solve([...rows]);
        return new Map(
          solutions.map(({ episode, actions = [] }) => {
            const group = Number(/-g(\d+)-/.exec(episode)?.[1] ?? 0);
            const names = environments.find(({ tag }) => tag === tags[tagIndex(group)])?.actions;
            return [episode, actions.map(action => names?.[Number(action)] ?? String(action))];
          }),
        );
      },
    },
    { looking: looking.learn, actionsPerTurn: 2, actionSeparator: '||' },
  );
}

/** Returns the position of the group's tag in `tags`. */
function tagIndex(group: number): number {
  let last = 0;
  return groups.findIndex(count => group < (last += count));
}

function proxyOf(
  config: RunConfig,
  pool: EnvironmentProcess,
  generator: TextGenerator,
  tokenizer: PromptTokenizer,
  stop_token_ids: number[],
  max_model_len: number,
): AgentProxy {
  return new AgentProxy(generator, pool, tokenizer, {
    seed: config.seed,
    agent_proxy: config.agent_proxy,
    enable_response_mask: true,
    ragen: false,
    rollout: { ...config.actor_rollout_ref.rollout, max_model_len },
    es_manager: config.es_manager,
    custom_envs: config.custom_envs,
    async_rollout: true,
    max_failed_episodes_share: 0,
    stop_token_ids,
  });
}

main().catch((error: Error) => {
  printLine(error.stack ?? error.message);
  process.exitCode = 1;
});
