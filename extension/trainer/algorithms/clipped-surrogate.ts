// PPO's clipped surrogate of one token (Schulman et al., 2017), clipped further above than below (DAPO, Yu et al., 2025) and with a
// second bound where the advantage is negative (dual clip, Ye et al., 2020). Clamps are verl's.
import { clamp } from './kl';

export interface ClipOptions {
  clip_ratio_low: number;
  clip_ratio_high: number;
  /** Dual clip constant c > 1: bounds the loss of tokens with a negative advantage. */
  clip_ratio_c: number;
}

/** Loss of one token before aggregation. */
export interface TokenLoss {
  loss: number;
  /** Its derivative by log π of the token, with what the method holds constant held constant. */
  slope: number;
  /** Whether a bound of the clip took effect, and whether the dual clip's did. */
  clipped: boolean;
  clippedLower: boolean;
}

/** The clipped surrogate of one token, with verl's bound of ±20 on the log-ratio. */
export function tokenPolicyLoss(
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high, clip_ratio_c }: ClipOptions,
): TokenLoss {
  const ratio = Math.exp(clamp(logRatio, -20, 20));
  const plain = -advantage * ratio;
  const bounded = -advantage * clamp(ratio, 1 - clip_ratio_low, 1 + clip_ratio_high);
  const pessimistic = Math.max(plain, bounded);
  const ceiling = -advantage * clip_ratio_c;
  const clippedLower = advantage < 0 && ceiling < pessimistic;
  const clipped = bounded > plain;
  return {
    loss: clippedLower ? ceiling : pessimistic,
    slope: clipped || clippedLower || Math.abs(logRatio) > 20 ? 0 : plain,
    clipped,
    clippedLower,
  };
}
