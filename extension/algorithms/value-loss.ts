// Loss of the critic (PPO's clipped value loss, as in verl). Each sampled token has two squared errors. The first is
// the error of the new value. The second is the error of the new value after it is clamped to ±`cliprange_value` around
// the old value. The loss is half the mean, over tokens, of the larger of the two errors. `ragen algo` and training on
// a remote server use this file. The local engine instead uses graph operations (models/decoder/critic.ts). A test
// compares the two implementations, so change both.
import { clamp } from './kl';

/** One sequence. All arrays have one entry per token; only entries with mask = 1 are read. */
export interface ValueSequence {
  values: Float32Array;
  old_values: Float32Array;
  returns: Float32Array;
  mask: Uint8Array;
}

export interface ValueLoss {
  vf_loss: number;
  /** Share of sampled tokens whose clipped error exceeded the unclipped error. */
  vf_clipfrac: number;
  vpred_mean: number;
}

/** Returns the loss of one token, whether its clipped error is the larger one, and dloss/dvalue. */
function tokenValueLoss(
  value: number,
  old: number,
  target: number,
  cliprange: number,
): { loss: number; clipped: boolean; slope: number } {
  const held = clamp(value, old - cliprange, old + cliprange);
  const plain = (value - target) ** 2;
  const clipped = (held - target) ** 2;
  const isClipped = clipped > plain; // then `held` is at the range's end and does not depend on the value
  return { loss: 0.5 * Math.max(plain, clipped), clipped: isClipped, slope: isClipped ? 0 : value - target };
}

/**
 * Returns dL/dvalue of every token, where L is the sum of the token losses, each multiplied by its entry in `weights`.
 * The gradients form one array per sequence; they are 0 where mask = 0. The metrics are those of `valueLoss`, except
 * that `vf_loss` is L.
 */
export function weightedValueLoss(
  sequences: readonly ValueSequence[],
  weights: readonly ArrayLike<number>[],
  cliprange_value: number,
): { gradients: Float64Array[]; metrics: ValueLoss } {
  let count = 0;
  const sums: ValueLoss = { vf_loss: 0, vf_clipfrac: 0, vpred_mean: 0 };
  const gradients = sequences.map(({ values, old_values, returns, mask }, row) =>
    Float64Array.from(mask, (bit, token) => {
      if (!bit) return 0;
      const of = tokenValueLoss(values[token], old_values[token], returns[token], cliprange_value);
      count++;
      sums.vf_loss += weights[row][token] * of.loss;
      sums.vf_clipfrac += of.clipped ? 1 : 0;
      sums.vpred_mean += values[token];
      return weights[row][token] * of.slope;
    }),
  );
  const perToken = Math.max(count, 1);
  const { vf_loss, vf_clipfrac, vpred_mean } = sums;
  return {
    gradients,
    metrics: { vf_loss, vf_clipfrac: vf_clipfrac / perToken, vpred_mean: vpred_mean / perToken },
  };
}

/** Returns loss and metrics, averaged over all sampled tokens of the mini-batch. In RAGEN, `cliprange_value` is 0.5. */
export function valueLoss(sequences: readonly ValueSequence[], cliprange_value: number): ValueLoss {
  let count = 0;
  const sums: ValueLoss = { vf_loss: 0, vf_clipfrac: 0, vpred_mean: 0 };
  for (const { values, old_values, returns, mask } of sequences)
    mask.forEach((bit, token) => {
      if (!bit) return;
      const { loss, clipped } = tokenValueLoss(values[token], old_values[token], returns[token], cliprange_value);
      count++;
      sums.vf_loss += loss;
      sums.vf_clipfrac += clipped ? 1 : 0;
      sums.vpred_mean += values[token];
    });
  const share = 1 / (count + 1e-8);
  return {
    vf_loss: sums.vf_loss * share,
    vf_clipfrac: sums.vf_clipfrac * share,
    vpred_mean: sums.vpred_mean * share,
  };
}
