// Mean over seeds with a 95 % confidence interval from Student's t. Used by sweeps in the terminal and by the run
// comparison in the editor.

/**
 * Mean over `n` values, and half the width of its 95 % confidence interval (Student's t). For fewer than `intervalSeeds`
 * values, the half width is null.
 */
export interface Estimate {
  mean: number;
  interval: number | null;
  n: number;
}

/** Least number of seeds for an interval; with fewer, Student's t is so wide that the single values say more. */
export const intervalSeeds = 3;

/** 97.5 % quantiles of Student's t for 2 to 30 degrees of freedom; the normal quantile is used above 30. */
const tQuantiles = [
  4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101,
  2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/**
 * Returns the mean of the values and its confidence interval; null for an empty list. Mean and deviation are computed
 * after the first value has been subtracted from every value, so that the interval of equal values is exactly 0.
 */
export function estimate(values: readonly number[]): Estimate | null {
  const n = values.length;
  if (n === 0) return null;
  const [origin] = values;
  const shift = values.reduce((sum, x) => sum + (x - origin), 0) / n;
  if (n < intervalSeeds) return { mean: origin + shift, interval: null, n };
  const squares = values.reduce((sum, x) => sum + (x - origin - shift) ** 2, 0);
  const deviation = Math.sqrt(squares / (n - 1));
  return { mean: origin + shift, interval: ((tQuantiles[n - intervalSeeds] ?? 1.96) * deviation) / Math.sqrt(n), n };
}

/** Returns the median; NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
