// Our side of the model benchmarks. The engine runs in its worker thread, as in the trainer, on model folders with
// random weights. Rollouts of a frozen model without adapters use the generator directly.
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import type { Engine } from '../../extension/engine/engine';
import type { GenerationRow, SamplingOptions } from '../../extension/engine/generation-calls';
import type { LoadOptions } from '../../extension/engine/load-options';
import type { OptimizerOptions, PolicyLossOptions } from '../../extension/engine/loss-options';
import type { PassBudget, WeightedSample } from '../../extension/engine/training-samples';
import { Graph } from '../../extension/engine/graph/graph';
import { linear } from '../../extension/engine/graph/layer-ops';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { startEngine } from '../../extension/engine/remote-engine';
import type { RemoteEngine } from '../../extension/engine/remote-engine';
import { Session, float32, loadRuntime } from '../../extension/engine/session/session';
import { Generator } from '../../extension/models/generation/generator';
import { mapDecoder } from '../../extension/models/decoder/mapped-decoder';
import { frozenNetwork } from '../../extension/models/decoder/networks';
import { HostParameters } from '../../extension/models/weights/parameter-bank';
import { PolicyEngine } from '../../extension/models/policy-engine';
import { quantizedNetwork } from '../../extension/models/weights/quantized-base';
import { Weights } from '../../extension/models/weights/weights';
import type { Workload } from './benchmark';
import type {
  IterationSettings,
  ModelSettings,
  ProductSettings,
  RolloutSettings,
  TrainingSettings,
} from './definitions';
import { cacheFolder, randomModel } from './random-model';
import { reinterpret } from '../support/partial';

export const worker = join(dirname(dirname(fileURLToPath(import.meta.url))), 'dist', 'engine-worker.cjs');
const maxPositions = 512;
export const budget: PassBudget = { maxTokens: 2048, maxRows: Infinity };
export const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 1,
};
export const optimizer: OptimizerOptions = {
  lr: 1e-6,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weight_decay: 0.01,
  grad_clip: 1,
};
/** Ids below `stopIds` end a row. */
export const sampling = (tokens: number, stopIds = 0): SamplingOptions => ({
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  max_new_tokens: tokens,
  stop_token_ids: Array.from({ length: stopIds }, (_, id) => id),
  stop: [],
  max_model_len: maxPositions,
});

async function loadOptions(
  s: ModelSettings & { quantised?: boolean },
  threads: number,
  checkpointed: boolean,
): Promise<LoadOptions> {
  return {
    modelFolder: await randomModel(s),
    adapterFolder: null,
    device: s.device ?? 'cpu',
    threads,
    lora: s.lora_rank > 0 ? { rank: s.lora_rank, alpha: 2 * s.lora_rank, dropout: 0, targets: 'all-linear' } : null,
    rolloutQuantization: s.quantised ? 'int8' : 'none',
    baseQuantization: 'none',
    precision: s.precision ?? 'float32',
    checkpointed,
    referenceFolder: null,
    critic: false,
    seed: 1,
    maxPositions,
    cacheFolder,
  };
}

/** Starts the engine in its worker thread with a model of the given size. */
export async function openEngine(
  s: ModelSettings & { quantised?: boolean },
  threads: number,
  checkpointed: boolean,
): Promise<RemoteEngine> {
  const engine = startEngine(worker);
  await engine.load(await loadOptions(s, threads, checkpointed));
  return engine;
}

/** Optimizer steps on one mini-batch; the initial model computes the old log-probs. */
export const training = (s: TrainingSettings, threads: number): Promise<Workload> => steps(s, threads, false);

/** The same steps with activation checkpointing, to measure their memory peak. */
export const memory = (s: TrainingSettings, threads: number): Promise<Workload> => steps(s, threads, true);

async function steps(s: TrainingSettings, threads: number, checkpointed: boolean): Promise<Workload> {
  const engine = await openEngine(s, threads, checkpointed);
  const stream = new RandomStream(2);
  const bare = episodes(s, stream);
  const { logprobs } = await engine.score('actor', bare, budget, 1);
  const trained = bare.reduce((sum, { mask }) => sum + mask.reduce((a, b) => a + b, 0), 0);
  const samples = bare.map((sample, row): WeightedSample => ({
    ...sample,
    old_logprobs: logprobs[row],
    ref_logprobs: new Float32Array(sample.ids.length),
    advantages: new Float32Array(sample.ids.length).map(() => stream.normal()),
    weights: new Float32Array(sample.ids.length).fill(1 / trained),
  }));
  return {
    run: async () => {
      for (let step = 0; step < s.steps; step++) await engine.update(samples, budget, loss, optimizer, step);
      return s.steps * bare.reduce((sum, { ids }) => sum + ids.length, 0);
    },
    release: () => engine.stop(),
  };
}

function episodes(s: TrainingSettings, stream: RandomStream): Pick<WeightedSample, 'ids' | 'mask'>[] {
  const turn = s.sampled + s.observed;
  return Array.from({ length: s.groups }, (_, group) => {
    const prompt = randomIds(s.prompt, s.vocab, stream);
    return s.lengths.slice(group * s.group_size, (group + 1) * s.group_size).map(further => ({
      ids: Int32Array.from([...prompt, ...randomIds(further, s.vocab, stream)]),
      mask: new Uint8Array(s.prompt + further).map((_, t) => +(t >= s.prompt && (t - s.prompt) % turn < s.sampled)),
    }));
  }).flat();
}

export const randomIds = (length: number, vocab: number, stream: RandomStream): number[] =>
  Array.from({ length }, () => stream.integer(vocab));

/** Initial rows of episodes; prompts are equal within a group. */
function prompts(s: RolloutSettings | IterationSettings, stream: RandomStream): GenerationRow[] {
  return Array.from({ length: s.groups }, (_, group) => {
    const append = randomIds(s.prompt, s.vocab, stream);
    return Array.from({ length: s.group_size }, (_, member) => ({
      row: `${group}.${member}`,
      append,
      seed: stream.integer(2 ** 31),
    }));
  }).flat();
}

/**
 * Samples after prompts, with a frozen model laid out for sampling or with a model whose weights change between runs.
 */
export async function rollout(s: RolloutSettings, threads: number): Promise<Workload> {
  const stream = new RandomStream(3);
  const { generate, release, stop } = s.frozen ? await frozenGenerator(s, threads) : await trainedGenerator(s, threads);
  return {
    run: async () => {
      const rows = prompts(s, stream);
      const generated = await generate(rows, sampling(s.tokens, s.stop_ids));
      await release(rows.map(({ row }) => row));
      return generated.reduce((sum, { ids }) => sum + ids.length, 0);
    },
    release: stop,
  };
}

type Rollouts = Pick<RemoteEngine, 'generate' | 'release' | 'stop'>;

async function trainedGenerator(s: RolloutSettings, threads: number): Promise<Rollouts> {
  if (s.quantised) throw new Error('bench: a fully trained model cannot be quantised');
  return openEngine(s, threads, false);
}

async function frozenGenerator(s: RolloutSettings, threads: number): Promise<Rollouts> {
  const base = await mapDecoder(await randomModel(s));
  const whole = frozenNetwork(base.config, base);
  const bytes = s.quantised ? await quantizedNetwork(base, cacheFolder) : whole;
  const network = s.quantised ? { ...bytes, plan: { ...bytes.plan, int8Products: true } } : whole;
  const nothingTrained = new HostParameters(new Weights([]), { threads });
  const generator = new Generator({ ...network, maxPositions }, nothingTrained, {
    threads,
    prepack: true,
    maxRows: s.at_once,
  });
  return {
    generate: (rows, options) => generator.generate(rows, options),
    release: async rows => generator.release(rows),
    stop: async () => (await generator.open()).release(),
  };
}

/**
 * Rollouts over several turns, GRPO advantages from random rewards, and one optimizer step per mini-batch with the
 * rollout's log-probs as the old ones.
 */
export async function iteration(s: IterationSettings, threads: number): Promise<Workload> {
  const engine = await openEngine(s, threads, false);
  const stream = new RandomStream(4);
  return {
    run: async () => {
      for (let i = 0; i < s.iterations; i++) await iterate(engine, s, stream);
      return s.iterations;
    },
    release: () => engine.stop(),
  };
}

/**
 * Percentage of an iteration's time that the engine's thread spends outside onnxruntime's `run`. For this measurement,
 * the engine runs in the current thread.
 */
export async function outside(s: IterationSettings, threads: number): Promise<number> {
  const engine = new PolicyEngine();
  await engine.load(await loadOptions(s, threads, false));
  const stream = new RandomStream(4);
  await iterate(engine, s, stream);
  const { InferenceSession } = await loadRuntime();
  const sessions = reinterpret<{ prototype: { run: (...args: unknown[]) => Promise<unknown> } }>(InferenceSession);
  const run = sessions.prototype.run;
  let inside = 0;
  sessions.prototype.run = async function (...args) {
    const start = performance.now();
    try {
      return await run.apply(this, args);
    } finally {
      inside += performance.now() - start;
    }
  };
  try {
    const start = performance.now();
    await iterate(engine, s, stream);
    const all = performance.now() - start;
    return (100 * (all - inside)) / all;
  } finally {
    sessions.prototype.run = run;
  }
}

async function iterate(engine: Engine, s: IterationSettings, stream: RandomStream): Promise<void> {
  const sampled = await rollOut(engine, s, stream);
  const advantages = groupAdvantages(s, stream);
  const order = sampled.map((_, i) => i).sort(() => stream.uniform() - 0.5);
  const share = 1 / (s.mini_batch * s.turns * s.sampled);
  for (let first = 0; first < order.length; first += s.mini_batch) {
    const batch = order.slice(first, first + s.mini_batch).map(row => ({
      ...sampled[row],
      ref_logprobs: new Float32Array(sampled[row].ids.length),
      advantages: new Float32Array(sampled[row].ids.length).fill(advantages[row]),
      weights: new Float32Array(sampled[row].ids.length).fill(share),
    }));
    await engine.update(batch, budget, loss, optimizer, first);
  }
}

type Rollout = Pick<WeightedSample, 'ids' | 'mask' | 'old_logprobs'>;

async function rollOut(engine: Engine, s: IterationSettings, stream: RandomStream): Promise<Rollout[]> {
  let rows = prompts(s, stream);
  const parts = rows.map(({ append }) => [{ ids: append, logprobs: append.map(() => 0), mask: 0 }]);
  for (let turn = 0; turn < s.turns; turn++) {
    const generated = await engine.generate(rows, sampling(s.sampled));
    generated.forEach(({ ids, logprobs }, i) => parts[i].push({ ids, logprobs, mask: 1 }));
    if (turn + 1 === s.turns) break;
    rows = rows.map(({ row }) => ({
      row,
      append: randomIds(s.observed, s.vocab, stream),
      seed: stream.integer(2 ** 31),
    }));
    rows.forEach(({ append }, i) => parts[i].push({ ids: append, logprobs: append.map(() => 0), mask: 0 }));
  }
  await engine.release(rows.map(({ row }) => row));
  return parts.map(turns => ({
    ids: Int32Array.from(turns.flatMap(({ ids }) => ids)),
    mask: Uint8Array.from(turns.flatMap(({ ids, mask }) => ids.map(() => mask))),
    old_logprobs: Float32Array.from(turns.flatMap(({ logprobs }) => logprobs)),
  }));
}

/** Random rewards, centred and normalized by their group's mean and standard deviation. */
export function groupAdvantages(
  { groups, group_size }: Pick<IterationSettings, 'groups' | 'group_size'>,
  stream: RandomStream,
): number[] {
  return Array.from({ length: groups }, () => {
    const rewards = Array.from({ length: group_size }, () => stream.uniform());
    const mean = rewards.reduce((a, b) => a + b) / group_size;
    const deviation = Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (group_size - 1));
    return rewards.map(reward => (reward - mean) / (deviation + 1e-6));
  }).flat();
}

/** A large matrix product in onnxruntime, which measures the machine's limit. */
export async function product({ m, n, k, repeats }: ProductSettings, threads: number): Promise<Workload> {
  const stream = new RandomStream(5);
  const random = (count: number): Float32Array => Float32Array.from({ length: count }, () => stream.normal());
  const graph = new Graph('product');
  const a = graph.input('a', 'float32', [m, k]);
  graph.output('c', linear(graph, a, graph.input('b', 'float32', [n, k])));
  const session = await Session.create(graph, { threads });
  const feeds = { a: float32(random(m * k), [m, k]), b: float32(random(n * k), [n, k]) };
  return {
    run: async () => {
      for (let i = 0; i < repeats; i++) await session.run(feeds);
      return 2e-9 * m * n * k * repeats;
    },
    release: () => session.release(),
  };
}
