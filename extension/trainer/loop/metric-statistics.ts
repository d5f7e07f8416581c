// Metrics of a step under RAGEN's keys (docs/METRICS.md), computed from rollouts and from arrays per token. train.ts
// merges these metrics with the other metrics of the step and writes them to the metrics log.
import type { RolloutBatch } from '../rollout/rollout-batch';
import type { RolloutSample } from '../rollout/rollout-sample';

/**
 * Adds the prefix `train/` or `val-env/` to a rollout's metrics. In training, `rollout/…` and `response_length/…` have
 * no prefix, and `charts/…` appears both with and without the prefix, as in RAGEN.
 */
export function metricsOfRollout(
  { metrics }: Pick<RolloutBatch, 'metrics'>,
  prefix: 'train' | 'val-env',
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).flatMap(([key, value]) => {
      const prefixed = [`${prefix}/${key}`, value] as const;
      if (prefix === 'val-env') return [prefixed];
      if (key.startsWith('charts/')) return [[key, value], prefixed];
      return /^(rollout|response_length)\//.test(key) ? [[key, value]] : [prefixed];
    }),
  );
}

/** Returns the mean success rate over the tags of the validation, 0…1; null if the metrics contain no such rate. */
export function validationSuccess(metrics: Readonly<Record<string, number>>): number | null {
  return meanOfKeys(metrics, /^val-env\/[^/]+\/success$/);
}

/** Returns the mean return of the validation episodes; null if the metrics do not contain it. */
export const validationReturn = (metrics: Readonly<Record<string, number>>): number | null =>
  metrics['val-env/charts/avg_episode_return'] ?? null;

/**
 * Returns the mean success rate over the tags of the training rollout, 0…1; null if the metrics contain no such rate.
 */
export function trainingSuccess(metrics: Readonly<Record<string, number>>): number | null {
  return meanOfKeys(metrics, /^train\/[^/]+\/success$/);
}

/** Returns `key/mean`, `key/max` and `key/min` of `values`, which must not be empty. */
export function describe(key: string, values: ArrayLike<number>): Record<string, number> {
  let sum = 0;
  let max = -Infinity;
  let min = Infinity;
  for (let i = 0; i < values.length; i++) {
    sum += values[i];
    max = Math.max(max, values[i]);
    min = Math.min(min, values[i]);
  }
  return { [`${key}/mean`]: sum / values.length, [`${key}/max`]: max, [`${key}/min`]: min };
}

/**
 * Returns mean, maximum and minimum of the response lengths and of the prompt lengths of the trained samples. A
 * response length is the number of trained tokens. A prompt length is the number of tokens before the first trained
 * token.
 * @param longestPrompt maximum number of prompt tokens
 */
export function lengthsOf(
  samples: readonly Pick<RolloutSample, 'mask'>[],
  longestPrompt: number,
): Record<string, number> {
  const prompts = samples.map(({ mask }) => mask.indexOf(1));
  return {
    ...describe(
      'response_length',
      samples.map(({ mask }) => mask.reduce((n, bit) => n + bit, 0)),
    ),
    ...describe('prompt_length', prompts),
    'prompt_length/clip_ratio': prompts.filter(length => length >= longestPrompt).length / prompts.length,
  };
}

/**
 * Returns the share of the variance of `returns` that `values` explain, as computed by verl. Both arrays must have at
 * least two numbers.
 */
export function explainedVariance(values: readonly number[], returns: readonly number[]): number {
  const variance = (numbers: readonly number[]): number => {
    const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
    return numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (numbers.length - 1);
  };
  return 1 - variance(returns.map((r, i) => r - values[i])) / (variance(returns) + 1e-5);
}

/** Removes non-finite numbers, such as the mean of an empty list, an overflowed norm, or a rate over zero seconds. */
export function finiteOnly(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)));
}

/** Returns the mean over the tokens with mask 1. */
export function meanOf(rows: readonly Float32Array[], masks: readonly Uint8Array[]): number {
  let sum = 0;
  let count = 0;
  rows.forEach((row, r) =>
    row.forEach((x, t) => {
      if (!masks[r][t]) return;
      sum += x;
      count++;
    }),
  );
  return sum / count;
}

/** Returns the numbers at tokens with mask 1. */
export const numbersWhere = (rows: readonly Float32Array[], masks: readonly Uint8Array[]): number[] =>
  rows.flatMap((row, r) => Array.from(row).filter((_, t) => masks[r][t]));

/**
 * Returns the mean of each key over `results`, which all have the same keys, and adds `prefix/` to the keys. Returns an
 * empty object if there are no results.
 */
export function averaged(prefix: string, results: readonly Record<string, number>[]): Record<string, number> {
  const keys = Object.keys(results[0] ?? {});
  return Object.fromEntries(
    keys.map(key => [`${prefix}/${key}`, results.reduce((sum, result) => sum + result[key], 0) / results.length]),
  );
}

function meanOfKeys(metrics: Readonly<Record<string, number>>, pattern: RegExp): number | null {
  const values = Object.entries(metrics).flatMap(([key, value]) => (pattern.test(key) ? [value] : []));
  return values.length > 0 ? values.reduce((sum, x) => sum + x, 0) / values.length : null;
}
