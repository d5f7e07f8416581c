// CISPO (MiniMax-M1, 2025): REINFORCE whose importance weight is clipped and a constant in the gradient, so that no token's gradient is
// lost to clipping: loss = −sg[clip(ρ)] · A · log π.
import type { ClipOptions, TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

/** Loss of one token from log π and the log-ratio to the old policy (held to ±20). There is no dual clip. */
export function cispoTokenLoss(
  logprob: number,
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high }: Pick<ClipOptions, 'clip_ratio_low' | 'clip_ratio_high'>,
): TokenLoss {
  const ratio = Math.exp(clamp(logRatio, -20, 20));
  const weight = clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const slope = -weight * advantage;
  return { loss: slope * logprob, slope, clipped: weight !== ratio, clippedLower: false };
}
