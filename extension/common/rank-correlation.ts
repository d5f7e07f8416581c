// Ranks and Spearman's rank correlation, which is Pearson's correlation of the ranks. Pure functions; the values are
// tested against SciPy's.

/** Returns Spearman's rank correlation, with mean ranks for equal values; 0 if a list is constant. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranksOf(a), ranksOf(b)];
  const middle = (a.length + 1) / 2;
  let [xy, xx, yy] = [0, 0, 0];
  x.forEach((rank, i) => {
    xy += (rank - middle) * (y[i] - middle);
    xx += (rank - middle) ** 2;
    yy += (y[i] - middle) ** 2;
  });
  return correlationOf(xy, xx, yy);
}

/**
 * Returns a function of drawn clusters, given by their indices, each any number of times: the rank correlation of x with y
 * over their observations. Values are sorted once and not in each call, so that thousands of resamples are fast.
 */
export function resampledCorrelation(
  clusters: readonly { x: readonly number[]; y: readonly number[] }[],
): (drawn: readonly number[]) => number {
  const clusterOf = clusters.flatMap(({ x }, cluster) => x.map(() => cluster));
  const ranked = [clusters.flatMap(({ x }) => x), clusters.flatMap(({ y }) => y)].map(values => {
    const order = [...values.keys()].sort((i, j) => values[i] - values[j]);
    return { values, order, ranks: new Float64Array(values.length) };
  });
  const times = new Float64Array(clusters.length);
  return drawn => {
    times.fill(0);
    for (const cluster of drawn) times[cluster]++;
    for (const { values, order, ranks } of ranked) {
      let before = 0;
      for (let from = 0, to = 0; from < order.length; from = to) {
        let own = times[clusterOf[order[to++]]];
        for (; to < order.length && values[order[to]] === values[order[from]]; to++) own += times[clusterOf[order[to]]];
        for (let i = from; i < to; i++) ranks[order[i]] = before + (own + 1) / 2;
        before += own;
      }
    }
    const middle = (clusterOf.reduce((sum, cluster) => sum + times[cluster], 0) + 1) / 2;
    const [x, y] = ranked.map(({ ranks }) => ranks);
    let [xy, xx, yy] = [0, 0, 0];
    clusterOf.forEach((cluster, i) => {
      xy += times[cluster] * (x[i] - middle) * (y[i] - middle);
      xx += times[cluster] * (x[i] - middle) ** 2;
      yy += times[cluster] * (y[i] - middle) ** 2;
    });
    return correlationOf(xy, xx, yy);
  };
}

const correlationOf = (xy: number, xx: number, yy: number): number =>
  xx === 0 || yy === 0 ? 0 : Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));

/** Returns the rank of each value, from 1; equal values have their mean rank. */
export function ranksOf(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((i, j) => values[i] - values[j]);
  const ranks = new Array<number>(values.length);
  let from = 0;
  while (from < order.length) {
    let to = from + 1; // a value that is no number equals nothing, not even itself
    while (to < order.length && values[order[to]] === values[order[from]]) to++;
    for (let i = from; i < to; i++) ranks[order[i]] = (from + to + 1) / 2;
    from = to;
  }
  return ranks;
}
