// Policy losses of the workspace. Before each optimizer step, the mini-batch is scored with the current weights, and the
// plug-in returns the loss and its slope (its derivative with respect to the log-prob) per token. The engine then
// minimises the surrogate −exp(logπ − logprobs)·advantage with the current log-probs and with advantages of −slope: its
// derivative at the current weights is the slope, for any loss. models/tinker/surrogate.ts uses the same identity.
import type { LossSequence, LossSettings, TokenLosses } from '../../../envs/api/plugins/loss';
import type { WeightedSample } from '../../engine/training-samples';
import { badValue, checkedList, checkedNumbers, checkedRecord, type CallablePlugin } from './checked-values';

/** Clip bounds of the surrogate that rounding of the ratio 1 cannot reach. */
export const unclipped = { clip_ratio_low: 0.9, clip_ratio_high: 9, clip_ratio_c: 10 } as const;

/** A mini-batch of the surrogate, and metrics of the plug-in's loss. */
export interface SurrogateBatch {
  samples: WeightedSample[];
  /**
   * `pg_loss`: the aggregated loss. `pg_clipfrac`, `pg_clipfrac_lower`: shares of the tokens that the loss marks as
   * clipped. `ppo_kl`: mean of the old log-prob minus the current one.
   */
  metrics: Record<'pg_loss' | 'pg_clipfrac' | 'pg_clipfrac_lower' | 'ppo_kl', number>;
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
  const metrics = { pg_loss: 0, pg_clipfrac: 0, pg_clipfrac_lower: 0, ppo_kl: 0 };
  let count = 0;
  samples.forEach(({ mask, weights, old_logprobs: old }, i) =>
    mask.forEach((bit, token) => {
      if (!bit) return;
      count++;
      metrics.pg_loss += weights[token] * losses[i].loss[token];
      metrics.pg_clipfrac += losses[i].clipped[token];
      metrics.pg_clipfrac_lower += losses[i].clippedLower[token];
      metrics.ppo_kl += old[token] - logprobs[i][token];
    }),
  );
  for (const key of ['pg_clipfrac', 'pg_clipfrac_lower', 'ppo_kl'] as const) metrics[key] /= Math.max(count, 1);
  return {
    samples: samples.map((sample, i) => ({
      ...sample,
      old_logprobs: logprobs[i],
      advantages: losses[i].slope.map(slope => -slope),
    })),
    metrics,
  };
}

/** Computes the losses of each token. @throws PluginError if the plug-in fails or returns an invalid value */
export async function lossWith(
  plugin: CallablePlugin,
  sequences: readonly LossSequence[],
  settings: LossSettings,
): Promise<Record<keyof TokenLosses, Float32Array>[]> {
  const called = { path: plugin.path, function: 'loss' };
  const value = await plugin.call('loss', sequences, settings);
  return checkedList(called, value, sequences.length, 'losses').map((each, i) => {
    const losses = checkedRecord(called, each, 'return { loss, slope } for each sequence');
    const { length } = sequences[i].mask;
    const at = (token: number) => `token ${token} of sequence ${i}`;
    const row = (numbers: unknown, what: string) =>
      checkedNumbers(called, numbers, new Float32Array(length), `${what}s`, token => `the ${what} of ${at(token)}`);
    const marks = (name: 'clipped' | 'clippedLower') => {
      const found = losses[name] === undefined ? new Float32Array(length) : row(losses[name], `mark (${name})`);
      const other = found.findIndex(mark => mark !== 0 && mark !== 1);
      if (other < 0) return found;
      throw badValue(called, `returned ${found[other]} as ${name} of ${at(other)}`, 'return 0 or 1');
    };
    return {
      loss: row(losses.loss, 'loss'),
      slope: row(losses.slope, 'slope'),
      clipped: marks('clipped'),
      clippedLower: marks('clippedLower'),
    };
  });
}
