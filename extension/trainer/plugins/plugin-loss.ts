// Policy losses of the workspace. Before each optimizer step, the mini-batch is scored with the current weights, and the
// plug-in returns the loss and its slope (its derivative with respect to the log-prob) per token. The engine then
// minimises the surrogate −exp(logπ − logprobs)·advantage with the current log-probs and with advantages of −slope: its
// derivative at the current weights is the slope, for any loss. models/tinker/surrogate.ts uses the same identity.
import type { LossSequence, LossSettings, TokenLosses } from '../../../envs/api/plugins/loss';
import type { WeightedSample } from '../../engine/training-samples';
import { checkedList, checkedNumbers, checkedRecord, type CallablePlugin } from './checked-values';

/** Clip bounds of the surrogate that rounding of the ratio 1 cannot reach. */
export const unclipped = { clip_ratio_low: 0.9, clip_ratio_high: 9, clip_ratio_c: 10 } as const;

/** A mini-batch of the surrogate, and metrics of the plug-in's loss. */
export interface SurrogateBatch {
  samples: WeightedSample[];
  /** `pg_loss`: the aggregated loss. `ppo_kl`: mean of the old log-prob minus the current one. */
  metrics: { pg_loss: number; ppo_kl: number };
}

/**
 * Returns the mini-batch whose surrogate has the gradient of the plug-in's loss.
 * @param logprobs log-probs under the current weights
 * @throws PluginError if the loss fails or returns an invalid value
 */
export async function surrogateWith(
  plugin: CallablePlugin,
  samples: readonly WeightedSample[],
  logprobs: readonly Float32Array[],
  settings: LossSettings,
): Promise<SurrogateBatch> {
  const sequences = samples.map(({ old_logprobs: old, advantages, mask }, i) => ({
    ...{ logprobs: logprobs[i], old, advantages, mask },
  }));
  const losses = await lossWith(plugin, sequences, settings);
  const metrics = { pg_loss: 0, ppo_kl: 0 };
  let count = 0;
  samples.forEach(({ mask, weights, old_logprobs: old }, i) =>
    mask.forEach((bit, token) => {
      if (!bit) return;
      count++;
      metrics.pg_loss += weights[token] * losses[i].loss[token];
      metrics.ppo_kl += old[token] - logprobs[i][token];
    }),
  );
  metrics.ppo_kl /= Math.max(count, 1);
  return {
    samples: samples.map((sample, i) => ({
      ...sample,
      old_logprobs: logprobs[i],
      advantages: losses[i].slope.map(slope => -slope),
    })),
    metrics,
  };
}

/** Computes loss and slope of each token. @throws PluginError if the plug-in fails or returns an invalid value */
export async function lossWith(
  plugin: CallablePlugin,
  sequences: readonly LossSequence[],
  settings: LossSettings,
): Promise<Record<keyof TokenLosses, Float32Array>[]> {
  const called = { path: plugin.path, function: 'loss' };
  const value = await plugin.call('loss', sequences, settings);
  return checkedList(called, value, sequences.length, 'losses').map((each, i) => {
    const { loss, slope } = checkedRecord(called, each, 'return { loss, slope } for each sequence');
    const row = (numbers: unknown, what: string) => {
      const empty = new Float32Array(sequences[i].mask.length);
      return checkedNumbers(
        called,
        numbers,
        empty,
        `${what}s`,
        token => `the ${what} of token ${token} of sequence ${i}`,
      );
    };
    return { loss: row(loss, 'loss'), slope: row(slope, 'slope') };
  });
}
