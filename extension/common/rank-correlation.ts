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
  return xx === 0 || yy === 0 ? 0 : Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}

/** Returns the rank of each value, from 1; equal values have their mean rank. */
export function ranksOf(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((i, j) => values[i] - values[j]);
  const ranks = new Array<number>(values.length);
  let from = 0;
  while (from < order.length) {
    let to = from;
    while (to < order.length && values[order[to]] === values[order[from]]) to++;
    for (let i = from; i < to; i++) ranks[order[i]] = (from + to + 1) / 2;
    from = to;
  }
  return ranks;
}
