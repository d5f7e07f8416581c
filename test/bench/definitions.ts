// The benchmarks: the settings that both sides receive. Settings are plain numbers, so that neither side applies its
// own rules; episode lengths are drawn here once. `operations` is a lower bound of the floating-point operations of the
// work (necessary-operations.ts).
import type { Provider } from '../../extension/engine/session/devices';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { picturedDefinitions } from './pictured-definitions';
import type { EncodingSettings, FirstTokenSettings, PicturedIterationSettings } from './pictured-definitions';
import { iterationOperations, productOperations, rolloutOperations, trainingOperations } from './necessary-operations';

/** A Qwen2 decoder with random weights: tied head, biases on q, k and v. */
export interface ModelSettings {
  vocab: number;
  hidden: number;
  intermediate: number;
  layers: number;
  heads: number;
  kv_heads: number;
  head_size: number;
  rope_theta: number;
  /** Rank of adapters on every linear layer over a frozen base, with alpha twice the rank; 0 trains all weights. */
  lora_rank: number;
  base_dtype: 'float32' | 'bfloat16';
  /** Device of both sides, the CPU by default; the peer uses CUDA for every GPU. */
  device?: Provider;
  /** Precision in which our side multiplies activations and weights, float32 by default. */
  precision?: 'float32' | 'float16';
}

/**
 * Optimizer steps with the clipped policy loss on one mini-batch, averaged over its trained tokens, gradients clipped
 * at 1, AdamW. Unit: tokens of the batch, with the prompt counted in every episode.
 */
export interface TrainingSettings extends ModelSettings {
  groups: number;
  /** Episodes of a group share the prompt. */
  group_size: number;
  /** Number of prompt tokens; none is trained on. */
  prompt: number;
  /** Number of tokens after the prompt for each episode, group by group. */
  lengths: number[];
  /**
   * After the prompt, turns of `sampled` tokens that are trained on and `observed` tokens that are not, cut off at the
   * length.
   */
  sampled: number;
  observed: number;
  /** Optimizer steps per run. */
  steps: number;
}

/** How the peer samples: with handwritten code, or with `generate` of transformers. */
export type SamplingPeer = 'by hand' | 'transformers';

/**
 * Prompts (equal within a group), then `tokens` tokens sampled at temperature 1 with their log-probs. Unit: sampled
 * tokens.
 */
export interface RolloutSettings extends ModelSettings {
  groups: number;
  group_size: number;
  prompt: number;
  tokens: number;
  /** Whether the weights stay constant between runs, so that a side may lay them out for matrix products once. */
  frozen: boolean;
  /** Whether our side multiplies in int8; the peer uses floats. */
  quantised: boolean;
  /**
   * Number of ids that end an episode, which is otherwise cut off after `tokens`. With random weights, each id is drawn
   * about once in `vocab` tokens.
   */
  stop_ids: number;
  /** Maximum number of episodes decoded together. */
  at_once: number;
  peer: SamplingPeer;
}

/**
 * Rollouts of `turns` turns of `sampled` tokens with observations of `observed` random tokens between them, random
 * rewards, GRPO advantages (normalized by the group's standard deviation), and one optimizer step per mini-batch with
 * the rollout's log-probs as the old ones. Unit: iterations.
 */
export interface IterationSettings extends ModelSettings {
  groups: number;
  group_size: number;
  prompt: number;
  turns: number;
  sampled: number;
  observed: number;
  /** Episodes per mini-batch. */
  mini_batch: number;
  /**
   * Whether our side samples with int8 products; a run corrects their effect with importance weights. The peer uses
   * floats.
   */
  quantised: boolean;
  peer: SamplingPeer;
  /** Iterations per run. */
  iterations: number;
}

/**
 * Log-probs of every text after every prompt; the prompts have no common prefix. The naive method passes each pair
 * through the model as a separate sequence, in batches as large as the number of prompts. The naive method and
 * cross-scoring compute logits only for the tokens of the texts. Unit: speed-up over the naive method.
 */
export interface CrossScoringSettings extends ModelSettings {
  prompts: number;
  /** Number of tokens of each prompt. */
  prompt: number;
  /** Number of tokens of each text. */
  lengths: number[];
}

/** [m, k] × [n, k]ᵀ in float32, repeated. Unit: 10⁹ operations. */
export interface ProductSettings {
  m: number;
  n: number;
  k: number;
  repeats: number;
}

/** Random actions, at most `actions` per episode. Unit: steps. */
export interface LakeSettings {
  size: number;
  p: number;
  success_rate: number;
  is_slippery: boolean;
  new_map: boolean;
  actions: number;
  episodes: number;
}

export interface SokobanSettings {
  rows: number;
  columns: number;
  boxes: number;
  search_depth: number;
  actions: number;
  episodes: number;
}

/**
 * Saves of a one-file environment while episodes are running. Unit: median milliseconds from a save to the first
 * episode that uses it.
 */
export interface LiveEditSettings {
  saves: number;
  /** Number of concurrent episodes. */
  episodes: number;
}

/**
 * Repeated changes of an environment's code, each followed by an episode. Unit: percent by which the memory of the
 * environment process grows.
 */
export interface SwapSettings {
  swaps: number;
  checkTypes: boolean;
}

/**
 * Programs that call the policy at the same time, each in one growing conversation. Unit: median milliseconds that the
 * gateway adds to a call of a bare HTTP server.
 */
export interface GatewaySettings {
  /** Number of programs. */
  episodes: number;
  /** Calls of each program. */
  calls: number;
  /** Mean milliseconds that the policy takes for a reply. */
  policyMs: number;
}

/**
 * Settings by kind of work. `memory` is one optimizer step in a separate process, whose peak is measured. `outside` is
 * the share of an iteration that the engine's thread spends outside onnxruntime. `outside`, `cross-scoring` (compared
 * with the naive method), the gateway and both kinds of live editing are measured on our side only.
 */
export interface SettingsOf {
  training: TrainingSettings;
  memory: TrainingSettings;
  rollout: RolloutSettings;
  iteration: IterationSettings;
  outside: IterationSettings;
  'cross-scoring': CrossScoringSettings;
  product: ProductSettings;
  'frozen-lake': LakeSettings;
  sokoban: SokobanSettings;
  'live-edit': LiveEditSettings;
  'swap-memory': SwapSettings;
  gateway: GatewaySettings;
  encoding: EncodingSettings;
  'first-token': FirstTokenSettings;
  'pictured-iteration': PicturedIterationSettings;
}
export type Kind = keyof SettingsOf;
/** Kinds measured on our side only, as one number instead of a rate. */
export type Alone = (typeof alone)[number];
const alone = ['outside', 'cross-scoring', 'live-edit', 'swap-memory', 'gateway'] as const;

interface Described {
  /** Also selects the peer's candidates (peer/candidates.py). */
  name: string;
  unit: string;
  better: 'higher' | 'lower';
  /**
   * Target for the ratio of our value to the peer's, or for our value if there is no peer: a minimum, or a maximum if
   * lower is better.
   */
  target: number | null;
  /** Whether the benchmark takes minutes; such benchmarks run only when requested by name. */
  large: boolean;
  /** Lower bound of floating-point operations per unit of work; null if that is not meaningful. */
  operations: number | null;
}
export type Definition = { [K in Kind]: Described & { kind: K; settings: SettingsOf[K] } }[Kind];

export const isAlone = (definition: Definition): definition is Extract<Definition, { kind: Alone }> =>
  (alone as readonly Kind[]).includes(definition.kind);

type DefinitionOf<K extends Kind> = Extract<Definition, { kind: K }>;

const float = { lora_rank: 0, base_dtype: 'float32' } as const;
export const tiny: ModelSettings = {
  ...float,
  vocab: 256,
  hidden: 128,
  intermediate: 384,
  layers: 4,
  heads: 4,
  kv_heads: 2,
  head_size: 32,
  rope_theta: 1e4,
};
const d256: ModelSettings = {
  ...float,
  vocab: 1024,
  hidden: 256,
  intermediate: 768,
  layers: 6,
  heads: 4,
  kv_heads: 2,
  head_size: 64,
  rope_theta: 1e4,
};
/** Qwen2.5-0.5B. */
const halfBillion: ModelSettings = {
  ...float,
  vocab: 151_936,
  hidden: 896,
  intermediate: 4864,
  layers: 24,
  heads: 14,
  kv_heads: 2,
  head_size: 64,
  rope_theta: 1e6,
};
export const adapted: ModelSettings = { ...halfBillion, lora_rank: 16 };

/** `count` integers in [least, most]. */
export function drawn(count: number, least: number, most: number, seed: number): number[] {
  const stream = new RandomStream(seed);
  return Array.from({ length: count }, () => least + stream.integer(most - least + 1));
}

/** Settings of rows without shared prefixes; all tokens except the first are trained on. */
const dense = (rows: number, length: number) => ({
  groups: rows,
  group_size: 1,
  prompt: 1,
  lengths: new Array<number>(rows).fill(length - 1),
  sampled: length - 1,
  observed: 0,
});

function training(name: string, settings: TrainingSettings, target: number | null, large: boolean): Definition {
  const operations = trainingOperations(settings);
  return { name, kind: 'training', unit: 'tokens/s', better: 'higher', target, large, operations, settings };
}

function rollout(name: string, settings: RolloutSettings, target: number | null, large: boolean): Definition {
  const operations = rolloutOperations(settings);
  return { name, kind: 'rollout', unit: 'tokens/s', better: 'higher', target, large, operations, settings };
}

function iteration(name: string, settings: IterationSettings): Definition {
  const operations = iterationOperations(settings);
  return {
    name,
    kind: 'iteration',
    unit: 'iterations/s',
    better: 'higher',
    target: 2,
    large: true,
    operations,
    settings,
  };
}

const equal = { stop_ids: 0, quantised: false, peer: 'by hand' } as const;
const rows32 = { ...equal, groups: 4, group_size: 8, prompt: 64, frozen: true, at_once: 32 };
const distinct = { ...equal, group_size: 1, prompt: 32, tokens: 64, frozen: false };
/**
 * Rows of unequal length. The stop ids give a mean length of 64 tokens, half of the limit of 128, so a batch that waits
 * for its longest row does slightly more than twice the necessary work.
 */
const unequal = { ...rows32, groups: 16, tokens: 128, stop_ids: 16 };
const unequalLarge = { ...rows32, groups: 8, tokens: 32, stop_ids: 9496 };
const turns = { sampled: 24, observed: 16, steps: 1 };
const truncated: IterationSettings = {
  ...adapted,
  layers: 4,
  groups: 2,
  group_size: 16,
  prompt: 96,
  turns: 2,
  sampled: 24,
  observed: 16,
  mini_batch: 32,
  quantised: false,
  peer: 'by hand',
  iterations: 1,
};
const peak = {
  kind: 'memory',
  unit: 'MiB',
  better: 'lower',
  large: true,
  operations: null,
  settings: { ...adapted, ...dense(8, 256), steps: 1 },
} as const;
const room = { rows: 6, columns: 6, boxes: 1, search_depth: 300 };
const lake = { size: 4, p: 0.9, success_rate: 0.8, is_slippery: true, actions: 10, episodes: 2000 };
const environment = { unit: 'steps/s', better: 'higher', target: 30, large: false, operations: null } as const;

/** A large matrix product, which measures the machine's limit; it runs with every selection of benchmarks. */
export const limit: DefinitionOf<'product'> = {
  name: 'matrix product, 2048',
  kind: 'product',
  unit: 'GFLOP/s',
  better: 'higher',
  target: null,
  large: false,
  operations: productOperations,
  settings: { m: 2048, n: 2048, k: 2048, repeats: 8 },
};

export const definitions: readonly Definition[] = [
  training('training, d128/4L', { ...tiny, ...dense(32, 128), steps: 5 }, null, false),
  rollout('rollout, d128/4L, batch 32', { ...tiny, ...distinct, groups: 32, at_once: 32 }, null, false),
  rollout('rollout, d128/4L, batch 64', { ...tiny, ...distinct, groups: 64, at_once: 64 }, null, false),
  training(
    'training, d256/6L',
    { ...d256, groups: 2, group_size: 16, prompt: 160, lengths: drawn(32, 64, 256, 1), ...turns },
    1.5,
    false,
  ),
  training('training dense, d256/6L', { ...d256, ...dense(16, 256), steps: 1 }, null, false),
  rollout('rollout, d256/6L, batch 32', { ...d256, ...rows32, tokens: 128, frozen: false }, 2.5, false),
  training(
    'training, 0.5B LoRA r16',
    { ...adapted, groups: 1, group_size: 8, prompt: 128, lengths: drawn(8, 64, 128, 2), ...turns },
    1.5,
    true,
  ),
  rollout('rollout, 0.5B, batch 32', { ...halfBillion, ...rows32, tokens: 32 }, 2, true),
  rollout('rollout, 0.5B quantised, batch 32', { ...halfBillion, ...rows32, tokens: 32, quantised: true }, 5, true),
  rollout(
    'rollout, d256/6L, batch 32, against transformers',
    { ...d256, ...rows32, tokens: 128, peer: 'transformers' },
    null,
    false,
  ),
  rollout('episodes of unequal length, d256/6L, 32 at once', { ...d256, ...unequal }, null, false),
  rollout(
    'episodes of unequal length, d256/6L, 32 at once, against transformers',
    { ...d256, ...unequal, peer: 'transformers' },
    null,
    false,
  ),
  rollout(
    'rollout, 0.5B, batch 32, against transformers',
    { ...halfBillion, ...rows32, tokens: 32, peer: 'transformers' },
    null,
    true,
  ),
  rollout(
    'rollout, 0.5B quantised, batch 32, against transformers',
    { ...halfBillion, ...rows32, tokens: 32, quantised: true, peer: 'transformers' },
    null,
    true,
  ),
  rollout(
    'episodes of unequal length, 0.5B quantised, 32 at once, against transformers',
    { ...halfBillion, ...unequalLarge, quantised: true, peer: 'transformers' },
    null,
    true,
  ),
  rollout(
    'episodes of unequal length, 0.5B, 32 at once, against transformers',
    { ...halfBillion, ...unequalLarge, peer: 'transformers' },
    null,
    true,
  ),
  iteration('StarPO iteration, 0.5B truncated to 4 layers', truncated),
  iteration('StarPO iteration, 0.5B truncated to 4 layers, quantised rollouts', { ...truncated, quantised: true }),
  iteration('StarPO iteration, 0.5B truncated to 4 layers, against transformers', {
    ...truncated,
    peer: 'transformers',
  }),
  iteration('StarPO iteration, 0.5B truncated to 4 layers, quantised rollouts, against transformers', {
    ...truncated,
    quantised: true,
    peer: 'transformers',
  }),
  ...picturedDefinitions,
  {
    name: 'share of a StarPO iteration outside onnxruntime, 0.5B truncated to 4 layers',
    kind: 'outside',
    unit: '%',
    better: 'lower',
    target: 5,
    large: true,
    operations: null,
    settings: truncated,
  },
  {
    name: 'cross-scoring against the naive way, d128/4L',
    kind: 'cross-scoring',
    unit: 'times faster',
    better: 'higher',
    target: 5,
    large: false,
    operations: null,
    settings: { ...tiny, prompts: 8, prompt: 320, lengths: drawn(64, 16, 80, 6) },
  },
  {
    name: 'live-edit, save to first episode',
    kind: 'live-edit',
    unit: 'ms',
    better: 'lower',
    target: 1000,
    large: false,
    operations: null,
    settings: { saves: 10, episodes: 8 },
  },
  {
    name: 'gateway, 64 programs at once',
    kind: 'gateway',
    unit: 'ms',
    better: 'lower',
    target: 3,
    large: false,
    operations: null,
    settings: { episodes: 64, calls: 24, policyMs: 500 },
  },
  ...[2000, 10_000].map((swaps): Definition => {
    return {
      name: `memory after ${swaps} swaps of an environment`,
      kind: 'swap-memory',
      unit: '% growth',
      better: 'lower',
      target: 5,
      large: true,
      operations: null,
      settings: { swaps, checkTypes: false },
    };
  }),
  { ...peak, name: 'training peak memory, 0.5B LoRA', target: 0.7 },
  { ...peak, name: 'training peak memory, 0.5B LoRA, head in parts', target: null },
  { ...environment, name: 'FrozenLake, a map an episode', kind: 'frozen-lake', settings: { ...lake, new_map: true } },
  { ...environment, name: 'FrozenLake, one map', kind: 'frozen-lake', settings: { ...lake, new_map: false } },
  {
    ...environment,
    name: 'Sokoban, a room an episode',
    kind: 'sokoban',
    settings: { ...room, actions: 10, episodes: 100 },
  },
  {
    ...environment,
    name: 'Sokoban, rooms made',
    kind: 'sokoban',
    unit: 'rooms/s',
    settings: { ...room, actions: 0, episodes: 100 },
  },
  {
    ...environment,
    name: 'Sokoban, long walks',
    kind: 'sokoban',
    settings: { ...room, actions: 1000, episodes: 20 },
  },
];
