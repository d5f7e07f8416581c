// GSPO (Zheng et al., 2025): the importance ratio of a whole sequence, the geometric mean of its tokens' ratios, is clipped instead of
// each token's. As in verl, the ratio is a constant in the gradient but for the token's own probability:
// s_t = sg[s] · π(t)/sg[π(t)], which has the value s and the gradient s · ∇ log π(t) (the paper's GSPO-token).
import type { ClipOptions, TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

/** The log-ratio above which a sequence's ratio no longer grows. */
export const largestLogRatio = 10;

/** Mean over the sampled tokens of log π − log π_old: the logarithm of the sequence's ratio. 0 without any. */
export function sequenceLogRatio(logprobs: Float32Array, old_logprobs: Float32Array, mask: Uint8Array): number {
  let sum = 0;
  let count = 0;
  mask.forEach((bit, token) => {
    if (!bit) return;
    sum += logprobs[token] - old_logprobs[token];
    count++;
  });
  return count > 0 ? sum / count : 0;
}

/** Loss of one token of a sequence with this log-ratio. There is no dual clip. */
export function gspoTokenLoss(
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high }: Pick<ClipOptions, 'clip_ratio_low' | 'clip_ratio_high'>,
): TokenLoss {
  const ratio = Math.exp(Math.min(logRatio, largestLogRatio));
  const plain = -advantage * ratio;
  const bounded = -advantage * clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const clipped = bounded > plain;
  return {
    loss: Math.max(plain, bounded),
    slope: clipped || logRatio > largestLogRatio ? 0 : plain,
    clipped,
    clippedLower: false,
  };
}
