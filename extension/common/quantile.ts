// Quantiles of sorted values.

/**
 * Returns the quantile of ascending values at `share` (0 to 1), with linear interpolation between neighbours (NumPy's
 * default); NaN for no values.
 */
export function quantile(sorted: Float64Array, share: number): number {
  const position = share * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}
