// Loss of the critic (PPO's clipped value loss, as in verl). Each sampled token has two squared errors. The first is
// the error of the new value. The second is the error of the new value after it is clamped to ±`cliprange_value` around
// the old value. The loss is half the mean, over tokens, of the larger of the two errors. `ragen algo` evaluates this
// file; training uses a graph (models/decoder/critic.ts). A test compares both, so change both.
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

/** Returns loss and metrics, averaged over all sampled tokens of the mini-batch. In RAGEN, `cliprange_value` is 0.5. */
export function valueLoss(sequences: readonly ValueSequence[], cliprange_value: number): ValueLoss {
  let count = 0;
  const sums: ValueLoss = { vf_loss: 0, vf_clipfrac: 0, vpred_mean: 0 };
  for (const { values, old_values, returns, mask } of sequences)
    mask.forEach((bit, token) => {
      if (!bit) return;
      const held = clamp(values[token], old_values[token] - cliprange_value, old_values[token] + cliprange_value);
      const plain = (values[token] - returns[token]) ** 2;
      const clipped = (held - returns[token]) ** 2;
      count++;
      sums.vf_loss += 0.5 * Math.max(plain, clipped);
      sums.vf_clipfrac += clipped > plain ? 1 : 0;
      sums.vpred_mean += values[token];
    });
  const share = 1 / (count + 1e-8);
  return {
    vf_loss: sums.vf_loss * share,
    vf_clipfrac: sums.vf_clipfrac * share,
    vpred_mean: sums.vpred_mean * share,
  };
}
