// PPO's clipped surrogate of one token (Schulman et al., 2017). The clip bounds may be asymmetric (DAPO, Yu et al.,
// 2025). If the advantage is negative, a second bound applies, the dual clip (Ye et al., 2020). The clamps follow verl.
// `ragen algo` evaluates this file; training uses graph operations (models/graphs/policy-loss-graph.ts). A test
// compares the two implementations, so change both.
import { largestLogRatio, type ClipOptions } from './policy-loss-options';
import { clamp } from './kl';

/** Loss of one token before aggregation. */
export interface TokenLoss {
  loss: number;
  /**
   * Derivative of the loss with respect to the token's log π; the method's stop-gradient terms are treated as
   * constants.
   */
  slope: number;
  /** `clipped`: a clip bound took effect. `clippedLower`: the dual clip took effect. */
  clipped: boolean;
  clippedLower: boolean;
}

/** Returns the clipped surrogate of one token, with verl's bound of ±20 on the log-ratio. */
export function tokenPolicyLoss(
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high, clip_ratio_c }: ClipOptions,
): TokenLoss {
  const ratio = Math.exp(clamp(logRatio, -largestLogRatio, largestLogRatio));
  const plain = -advantage * ratio;
  const bounded = -advantage * clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const pessimistic = Math.max(plain, bounded);
  const ceiling = -advantage * clip_ratio_c;
  const clippedLower = advantage < 0 && ceiling < pessimistic;
  const clipped = bounded > plain;
  return {
    loss: clippedLower ? ceiling : pessimistic,
    slope: clipped || clippedLower || Math.abs(logRatio) > largestLogRatio ? 0 : plain,
    clipped,
    clippedLower,
  };
}
