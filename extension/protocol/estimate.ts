// A mean over seeds and how far it can be trusted: Student's interval, which is wide where there are few seeds, as it should be. Sweeps in
// the terminal and the comparison of runs in the editor share it.

/** Mean over `n` values and half the width of its 95 % interval (Student's t), null for one value. */
export interface Estimate {
  mean: number;
  interval: number | null;
  n: number;
}

/** Quantiles of Student's t at 97.5 % by degrees of freedom from 1; beyond, the normal's. */
const tQuantiles = [
  ...[12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131],
  ...[2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042],
];

/** Mean and interval of at least one number; null for none. Moments are taken around the first, so that equal values have no width. */
export function estimate(values: readonly number[]): Estimate | null {
  const n = values.length;
  if (n === 0) return null;
  const [origin] = values;
  const shift = values.reduce((sum, x) => sum + (x - origin), 0) / n;
  if (n === 1) return { mean: origin, interval: null, n };
  const squares = values.reduce((sum, x) => sum + (x - origin - shift) ** 2, 0);
  const deviation = Math.sqrt(squares / (n - 1));
  return { mean: origin + shift, interval: ((tQuantiles[n - 2] ?? 1.96) * deviation) / Math.sqrt(n), n };
}

/** The middle value, or the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
