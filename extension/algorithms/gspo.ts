// GSPO (Zheng et al., 2025): clips the importance ratio of the whole sequence instead of the ratio of each token. The
// ratio of a sequence is the geometric mean of its tokens' ratios. As in verl, a token's loss has a gradient only
// through the probability of this token: s_t = sg[s] · π(t)/sg[π(t)]. The value of s_t is s, and the gradient of s_t is
// s times the gradient of log π(t). The paper calls this variant GSPO-token. `ragen algo` evaluates this file; training
// uses graph operations (models/graphs/policy-loss-graph.ts). A test compares the two implementations, so change both.
import { largestSequenceLogRatio, type ClipOptions } from './policy-loss-options';
import type { TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

/**
 * Returns the log of the sequence ratio: the mean of log π − log π_old over the sampled tokens. Returns 0 if no token
 * was sampled.
 */
export function sequenceLogRatio(
  logprobs: ArrayLike<number>,
  old_logprobs: ArrayLike<number>,
  mask: Uint8Array,
): number {
  let sum = 0;
  let count = 0;
  mask.forEach((bit, token) => {
    if (!bit) return;
    sum += logprobs[token] - old_logprobs[token];
    count++;
  });
  return count > 0 ? sum / count : 0;
}

/** Returns the loss of one token; `logRatio` is the log-ratio of the token's sequence. GSPO has no dual clip. */
export function gspoTokenLoss(
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high }: Pick<ClipOptions, 'clip_ratio_low' | 'clip_ratio_high'>,
): TokenLoss {
  const ratio = Math.exp(Math.min(logRatio, largestSequenceLogRatio));
  const plain = -advantage * ratio;
  const bounded = -advantage * clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const clipped = bounded > plain;
  return {
    loss: Math.max(plain, bounded),
    slope: clipped || logRatio > largestSequenceLogRatio ? 0 : plain,
    clipped,
    clippedLower: false,
  };
}
