// CISPO (MiniMax-M1, 2025): REINFORCE with a clipped importance weight. The weight is treated as a constant, so
// clipping never removes a token's gradient. Loss: −sg[clip(ρ)] · A · log π. `ragen algo` evaluates this file; training
// uses graph operations (models/graphs/policy-loss-graph.ts). A test compares the two implementations, so change both.
import { largestLogRatio, type ClipOptions } from './policy-loss-options';
import type { TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

/**
 * Returns the loss of one token from log π and the log-ratio to the old policy (clamped to ±20). CISPO has no dual
 * clip.
 */
export function cispoTokenLoss(
  logprob: number,
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high }: Pick<ClipOptions, 'clip_ratio_low' | 'clip_ratio_high'>,
): TokenLoss {
  const ratio = Math.exp(clamp(logRatio, -largestLogRatio, largestLogRatio));
  const weight = clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const slope = -weight * advantage;
  return { loss: slope * logprob, slope, clipped: weight !== ratio, clippedLower: false };
}
