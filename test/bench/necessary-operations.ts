// Floating-point operations that a benchmark's work needs at least: products of tokens with weights and of attention, a multiplication
// and an addition counted as two. What a group shares is counted once, logits only where they are wanted, nothing computed again;
// elementwise work, the optimizer and adapters' own products (1 % to 5 %) are left out. Both sides' share of the machine's limit is
// taken of the same count, so that padding, repetition and recomputation show as what they are.
import type { IterationSettings, ModelSettings, RolloutSettings, TrainingSettings } from './definitions';

/** Weights that a token meets in the layers. */
function layerWeights({ hidden, intermediate, layers, heads, kv_heads, head_size }: ModelSettings): number {
  return layers * (hidden * (2 * heads + 2 * kv_heads) * head_size + 3 * hidden * intermediate);
}

/** Forward operations of `tokens` that follow `past` others: layers and causal attention. */
function forward(model: ModelSettings, tokens: number, past: number): number {
  const pairs = tokens * past + (tokens * (tokens + 1)) / 2;
  return 2 * tokens * layerWeights(model) + 4 * pairs * model.layers * model.heads * model.head_size;
}

const head = ({ hidden, vocab }: ModelSettings, tokens: number): number => 2 * tokens * hidden * vocab;

/** Backward over forward: gradients of inputs, and of weights where they are trained. */
const withBackward = ({ lora_rank }: ModelSettings): number => (lora_rank > 0 ? 2 : 3);

/** A unit of a benchmark of products is 10⁹ operations. */
export const productOperations = 1e9;

/** Per token of the batch as episodes have them. */
export function trainingOperations(s: TrainingSettings): number {
  const turn = s.sampled + s.observed;
  const trained = (length: number): number =>
    Math.floor(length / turn) * s.sampled + Math.min(length % turn, s.sampled);
  const further = s.lengths.reduce((sum, length) => sum + forward(s, length, s.prompt) + head(s, trained(length)), 0);
  const tokens = s.lengths.reduce((sum, length) => sum + s.prompt + length, 0);
  return (withBackward(s) * (s.groups * forward(s, s.prompt, 0) + further)) / tokens;
}

/** Per sampled token; null where it depends on the lengths that are drawn. */
export function rolloutOperations(s: RolloutSettings): number | null {
  if (s.stop_ids > 0) return null;
  const row = forward(s, s.tokens - 1, s.prompt) + head(s, s.tokens);
  return (s.groups * forward(s, s.prompt, 0) + s.groups * s.group_size * row) / (s.groups * s.group_size * s.tokens);
}

/** Per iteration: rollouts, which need no logits of observations, then training on all episodes. */
export function iterationOperations(s: IterationSettings): number {
  const further = s.turns * s.sampled + (s.turns - 1) * s.observed;
  const episode = forward(s, further, s.prompt) + head(s, s.turns * s.sampled);
  const all = s.groups * forward(s, s.prompt, 0) + s.groups * s.group_size * episode;
  return (1 + withBackward(s)) * all;
}
