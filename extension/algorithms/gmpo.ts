// GMPO (Zhao et al., 2025; verl's geo_mean): clips the log-ratio of each token, and weighs the advantage of a sequence by
// the geometric mean of its clipped ratios. A token's loss has the value of the whole sequence and a gradient through the
// token's own log-prob, so that with seq-mean-token-mean and one advantage per sequence, loss and gradient are verl's.
// `ragen algo` evaluates this file; training uses graph operations (models/graphs/policy-loss-graph.ts). A test compares the
// two, so change both.
import type { ClipOptions } from './policy-loss-options';
import type { TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

type LogClip = Pick<ClipOptions, 'clip_ratio_low' | 'clip_ratio_high'>;

/**
 * Returns the clipped log-ratio of a token: bounded above by `clip_ratio_high` if the advantage is positive, below by
 * −`clip_ratio_low` if it is negative, and 0 if it is 0. The bounds apply to the logarithm of the ratio.
 */
export function clippedLogRatio(
  logRatio: number,
  advantage: number,
  { clip_ratio_low, clip_ratio_high }: LogClip,
): number {
  const sign = Math.sign(advantage);
  return sign * Math.min(sign * logRatio, sign * clamp(logRatio, -clip_ratio_low, clip_ratio_high));
}

/** Returns the mean clipped log-ratio over the sampled tokens of a sequence; 0 if no token was sampled. */
export function clippedSequenceLogRatio(
  logRatios: ArrayLike<number>,
  advantages: ArrayLike<number>,
  mask: Uint8Array,
  clip: LogClip,
): number {
  let [sum, count] = [0, 0];
  mask.forEach((bit, token) => {
    if (!bit) return;
    sum += clippedLogRatio(logRatios[token], advantages[token], clip);
    count++;
  });
  return count > 0 ? sum / count : 0;
}

/**
 * Returns the loss of one token. `clipped` and `clippedLower` mark log-ratios beyond the bounds, of tokens with a positive
 * and a negative advantage.
 * @param ofSequence mean clipped log-ratio of the token's sequence
 */
export function gmpoTokenLoss(logRatio: number, ofSequence: number, advantage: number, clip: LogClip): TokenLoss {
  const loss = -advantage * Math.exp(ofSequence);
  const beyond = clamp(logRatio, -clip.clip_ratio_low, clip.clip_ratio_high) !== logRatio;
  const moves = advantage !== 0 && clippedLogRatio(logRatio, advantage, clip) === logRatio;
  return {
    loss,
    slope: moves ? loss : 0,
    clipped: beyond && advantage > 0,
    clippedLower: beyond && advantage < 0,
  };
}
