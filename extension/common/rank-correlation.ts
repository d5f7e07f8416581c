// Ranks and Spearman's rank correlation, which is Pearson's correlation of the ranks. Pure functions; the values are
// tested against SciPy's.

/** Returns Spearman's rank correlation, with mean ranks for equal values; 0 if a list is constant. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const once = a.map(() => 1);
  return correlationOf(ranksOf(a), ranksOf(b), once);
}

/**
 * Returns a function of drawn clusters, given by their indices, each any number of times: the rank correlation of x with y
 * over their observations. Values are sorted once and not in each call, so that thousands of resamples are fast.
 */
export function resampledCorrelation(
  clusters: readonly { x: readonly number[]; y: readonly number[] }[],
): (drawn: readonly number[]) => number {
  const clusterOf = clusters.flatMap(({ x }, cluster) => x.map(() => cluster));
  const x = rankedValues(clusters.flatMap(({ x }) => x));
  const y = rankedValues(clusters.flatMap(({ y }) => y));
  const drawnTimes = new Float64Array(clusters.length);
  const times = new Float64Array(clusterOf.length);
  return drawn => {
    drawnTimes.fill(0);
    for (const cluster of drawn) drawnTimes[cluster]++;
    clusterOf.forEach((cluster, i) => (times[i] = drawnTimes[cluster]));
    return correlationOf(x(times), y(times), times);
  };
}

/** Returns the rank of each value, from 1; equal values have their mean rank. */
export const ranksOf = (values: readonly number[]): number[] => [...rankedValues(values)(values.map(() => 1))];

/**
 * Returns a function of how many times each value occurs: the rank of each value, from 1, with mean ranks for equal values.
 * The values are sorted once; the next call overwrites the ranks.
 */
function rankedValues(values: readonly number[]): (times: ArrayLike<number>) => Float64Array {
  const order = [...values.keys()].sort((i, j) => values[i] - values[j]);
  const ranks = new Float64Array(values.length);
  return times => {
    let before = 0;
    for (let from = 0, to = 0; from < order.length; from = to) {
      let own = times[order[to++]]; // a value that is no number equals nothing, not even itself
      for (; to < order.length && values[order[to]] === values[order[from]]; to++) own += times[order[to]];
      for (let i = from; i < to; i++) ranks[order[i]] = before + (own + 1) / 2;
      before += own;
    }
    return ranks;
  };
}

/** Returns Pearson's correlation of ranks, of which each pair occurs a number of times; 0 if a list is constant. */
function correlationOf(x: ArrayLike<number>, y: ArrayLike<number>, times: ArrayLike<number>): number {
  let count = 0;
  for (let i = 0; i < times.length; i++) count += times[i];
  const middle = (count + 1) / 2;
  let [xy, xx, yy] = [0, 0, 0];
  for (let i = 0; i < times.length; i++) {
    xy += times[i] * (x[i] - middle) * (y[i] - middle);
    xx += times[i] * (x[i] - middle) ** 2;
    yy += times[i] * (y[i] - middle) ** 2;
  }
  return xx === 0 || yy === 0 ? 0 : Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}
