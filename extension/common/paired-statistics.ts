// Comparison of two arms of an experiment whose runs are paired by seed, and bootstrap intervals. The mean difference has
// two intervals: Student's t of the differences, and the bootstrap's percentiles (Efron and Tibshirani 1993, chapter 13),
// which are too narrow for very few values: with five, a 95 % interval covers about 85 %. Pure functions: the seed of the
// bootstrap is an argument. The values are tested against SciPy's.
import { maximum } from './lists';
import { estimate, intervalSeeds } from './mean-estimate';
import { quantile } from './quantile';
import { resampledCorrelation } from './rank-correlation';
import { seededRandom } from './seeded-random';

/** Ends of a confidence interval. */
export interface Interval {
  low: number;
  high: number;
}

export interface Resampling {
  /** Seed of the resamples, an integer. */
  seed: number;
  /** Number of resamples. */
  resamples?: number;
  /** Confidence level, between 0 and 1. */
  level?: number;
}

/** Differences `b − a` of paired values. */
export interface PairedDifference {
  /** Number of pairs. */
  n: number;
  mean: number;
  /** Cohen's d_z: mean ÷ standard deviation of the differences; null for one pair, or if the differences are equal. */
  effectSize: number | null;
  /** 95 % interval of the mean by Student's t; null for fewer than `intervalSeeds` pairs. */
  student: Interval | null;
  /** Bootstrap interval of the mean; null for fewer than `intervalSeeds` pairs. */
  bootstrap: Interval | null;
}

/** Values of a cluster of observations that belong together, such as the steps of a run. */
export interface Cluster {
  x: readonly number[];
  y: readonly number[];
}

export interface ClusteredCorrelation {
  /** Spearman's rank correlation over all observations, −1 to 1. */
  rho: number;
  /** Bootstrap interval over clusters; null for fewer than `intervalSeeds` clusters. */
  interval: Interval | null;
  /** Number of observations. */
  n: number;
}

const defaultResamples = 10_000;
const defaultLevel = 0.95;

/**
 * Returns the mean of `b[i] − a[i]` with its intervals and effect size; null for no pairs. Element i of both lists must
 * belong to the same seed.
 * @throws RangeError if the lists differ in length
 */
export function pairedDifference(
  a: readonly number[],
  b: readonly number[],
  resampling: Resampling,
): PairedDifference | null {
  requirePairs(a, b);
  const differences = a.map((value, i) => b[i] - value);
  const estimated = estimate(differences);
  if (!estimated) return null;
  const { mean, interval, n } = estimated;
  const deviation = Math.sqrt(differences.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  // Differences that are equal but for rounding have no spread to compare with.
  const hasSpread = n > 1 && deviation > 1e-12 * Math.max(maximum(a.map(Math.abs)), maximum(b.map(Math.abs)));
  return {
    ...{ n, mean, effectSize: hasSpread ? mean / deviation : null },
    student: interval === null ? null : { low: mean - interval, high: mean + interval },
    bootstrap: bootstrapInterval(differences, meanOf, resampling),
  };
}

/**
 * Returns the percentile interval of a statistic over resamples of the values, for example of `meanOf`; null for fewer
 * than `intervalSeeds` values.
 */
export function bootstrapInterval<T>(
  values: readonly T[],
  statistic: (sample: readonly T[]) => number,
  { seed, resamples = defaultResamples, level = defaultLevel }: Resampling,
): Interval | null {
  if (values.length < intervalSeeds) return null;
  const random = seededRandom(seed);
  const sample = [...values];
  const measured = new Float64Array(resamples);
  for (let draw = 0; draw < resamples; draw++) {
    for (let i = 0; i < sample.length; i++) sample[i] = values[Math.floor(random() * values.length)];
    measured[draw] = statistic(sample);
  }
  measured.sort();
  const outside = (1 - level) / 2;
  return { low: quantile(measured, outside), high: quantile(measured, 1 - outside) };
}

/** Returns the mean, NaN for no values; the mean of equal values is exactly this value. */
export function meanOf(values: readonly number[]): number {
  const [origin] = values;
  return origin + values.reduce((sum, value) => sum + (value - origin), 0) / values.length;
}

/**
 * Returns Spearman's rank correlation over the observations of all clusters, with an interval from a bootstrap that draws
 * whole clusters. Observations of one run are correlated, so the interval that counts each as independent is too narrow.
 * @throws RangeError if the lists of a cluster differ in length
 */
export function clusteredCorrelation(clusters: readonly Cluster[], resampling: Resampling): ClusteredCorrelation {
  for (const { x, y } of clusters) requirePairs(x, y);
  const correlation = resampledCorrelation(clusters);
  const all = [...clusters.keys()];
  return {
    rho: correlation(all),
    interval: bootstrapInterval(all, correlation, resampling),
    n: clusters.reduce((sum, { x }) => sum + x.length, 0),
  };
}

function requirePairs(a: readonly unknown[], b: readonly unknown[]): void {
  if (a.length !== b.length)
    throw new RangeError(`paired values: the lists have ${a.length} and ${b.length} values, which must be equal`);
}
