// Lower bounds of the floating-point operations of a benchmark's work: products of tokens with weights and products in
// attention; a multiplication with its addition counts as two operations. Shared prefixes count once, logits count only
// where they are needed, and recomputation does not count. Elementwise work, the optimizer and the adapters' products
// (1 % to 5 %) are excluded. The share of the machine's limit is computed from this count for both sides, so padding,
// repetition and recomputation lower it.
import type { IterationSettings, ModelSettings, RolloutSettings, TrainingSettings } from './definitions';

/** Number of layer weights applied to each token. */
function layerWeights({ hidden, intermediate, layers, heads, kv_heads, head_size }: ModelSettings): number {
  return layers * (hidden * (2 * heads + 2 * kv_heads) * head_size + 3 * hidden * intermediate);
}

/** Forward operations of `tokens` tokens after `past` others: layers and causal attention. */
function forward(model: ModelSettings, tokens: number, past: number): number {
  const pairs = tokens * past + (tokens * (tokens + 1)) / 2;
  return 2 * tokens * layerWeights(model) + 4 * pairs * model.layers * model.heads * model.head_size;
}

const head = ({ hidden, vocab }: ModelSettings, tokens: number): number => 2 * tokens * hidden * vocab;

/**
 * Ratio of all operations to forward operations: the backward pass computes the gradients of inputs and, without
 * adapters, of weights.
 */
const withBackward = ({ lora_rank }: ModelSettings): number => (lora_rank > 0 ? 2 : 3);

/** Operations per unit of the matrix product benchmark. */
export const productOperations = 1e9;

/** Operations per token of the batch, with the prompt counted in every episode. */
export function trainingOperations(s: TrainingSettings): number {
  const turn = s.sampled + s.observed;
  const trained = (length: number): number =>
    Math.floor(length / turn) * s.sampled + Math.min(length % turn, s.sampled);
  const further = s.lengths.reduce((sum, length) => sum + forward(s, length, s.prompt) + head(s, trained(length)), 0);
  const tokens = s.lengths.reduce((sum, length) => sum + s.prompt + length, 0);
  return (withBackward(s) * (s.groups * forward(s, s.prompt, 0) + further)) / tokens;
}

/** Operations per sampled token; null if it depends on sampled lengths. */
export function rolloutOperations(s: RolloutSettings): number | null {
  if (s.stop_ids > 0) return null;
  const row = forward(s, s.tokens - 1, s.prompt) + head(s, s.tokens);
  return (s.groups * forward(s, s.prompt, 0) + s.groups * s.group_size * row) / (s.groups * s.group_size * s.tokens);
}

/** Operations per iteration: rollouts, which compute no logits of observations, then training on all episodes. */
export function iterationOperations(s: IterationSettings): number {
  const further = s.turns * s.sampled + (s.turns - 1) * s.observed;
  const episode = forward(s, further, s.prompt) + head(s, s.turns * s.sampled);
  const all = s.groups * forward(s, s.prompt, 0) + s.groups * s.group_size * episode;
  return (1 + withBackward(s)) * all;
}

/** Shape of a vision encoder of the form of ViT, and the patches of a picture. */
export interface EncoderShape {
  hidden: number;
  intermediate: number;
  layers: number;
  patches: number;
  /** Values of a patch. */
  patch_width: number;
}

/** Operations per encoded picture, without the projection to the decoder. */
export function encoderOperations({ hidden, intermediate, layers, patches, patch_width }: EncoderShape): number {
  const weights = layers * (4 * hidden ** 2 + 2 * hidden * intermediate) + patch_width * hidden;
  return 2 * patches * weights + 4 * layers * hidden * patches ** 2;
}
