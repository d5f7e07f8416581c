// Statistics of success. pass@k is computed by the unbiased estimator (Chen et al. 2021, arXiv 2107.03374, §2.1). Each
// mean of values in [0, 1] has a 95 % interval; the values are grouped by prompt. The interval is Wilson's, computed
// with an effective sample size that is estimated from the spread between groups (Kish; Dean and Pagano 2015). For
// example, if all episodes of each prompt have the same result, the effective sample size is the number of prompts.
// With one episode per group, the interval is the ordinary Wilson interval. The interval always has a positive width,
// even for means of 0 and 1.

export interface Estimate {
  mean: number;
  /** Bounds of the 95 % interval. */
  low: number;
  high: number;
}

/** 97.5 % quantile of the normal distribution. */
const z = 1.959963984540054;

/**
 * Returns the probability that at least one of `k` episodes is solved, if these `k` are drawn without replacement from
 * `n` episodes, of which `c` are solved: 1 − C(n−c, k)/C(n, k). Requires 1 ≤ k ≤ n.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (!(k >= 1 && k <= n && c >= 0 && c <= n))
    throw new RangeError(`pass@${k} is not defined for ${c} solved of ${n} episodes`);
  if (n - c < k) return 1;
  let allFail = 1;
  for (let i = n - c + 1; i <= n; i++) allFail *= 1 - k / i;
  return 1 - allFail;
}

/** Returns the values of k for which pass@k is reported: powers of two below the group size, and the group size. */
export function passSizes(group_size: number): number[] {
  const sizes: number[] = [];
  for (let k = 1; k < group_size; k *= 2) sizes.push(k);
  return [...sizes, group_size];
}

/**
 * Returns the mean over groups with its 95 % interval.
 * @param groups mean of each group, in [0, 1]; at least one group
 * @param trials total number of episodes; upper bound of the effective sample size
 */
export function meanOverGroups(groups: readonly number[], trials: number): Estimate {
  const count = groups.length;
  const mean = groups.reduce((sum, value) => sum + value, 0) / count;
  const variance = groups.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count;
  const spread = mean * (1 - mean);
  const effective = spread <= 0 ? count : variance > 0 ? Math.min(trials, (spread / variance) * count) : trials;
  return { mean, ...wilson(mean, effective) };
}

/** Returns Wilson's 95 % interval of a share observed in `trials` independent trials. */
function wilson(share: number, trials: number): { low: number; high: number } {
  const shrink = 1 + z ** 2 / trials;
  const centre = (share + z ** 2 / (2 * trials)) / shrink;
  const half = (z / shrink) * Math.sqrt((share * (1 - share)) / trials + z ** 2 / (4 * trials ** 2));
  return { low: share <= 0 ? 0 : Math.max(0, centre - half), high: share >= 1 ? 1 : Math.min(1, centre + half) };
}
