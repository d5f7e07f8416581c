// Buckets of prompt groups by the standard deviation of their scores, for the gradient analysis. RAGEN-2 shows that the
// standard deviation bounds the gradient of the task loss, but not the gradients of the regularisers. Pure.

/** A bucket: its name in metrics, and the indices of its groups in the input. */
export interface VarianceBucket {
  name: string;
  groups: number[];
}

/** Inclusive lower bounds of the fixed buckets; each bucket ends below the next bucket's bound. */
const fixedBounds = [0, 1, 2, 3, 4, 5];

/**
 * Returns the non-empty buckets, then the bucket `all`; no buckets if there are no groups.
 * @param mode `quantile`: at most `count` buckets of equal size by ascending deviation (the last bucket also contains
 * the remainder); `fixed_rv`: buckets with the lower bounds 0, 1, 2, 3, 4 and 5
 */
export function varianceBuckets(
  stds: ArrayLike<number>,
  mode: 'quantile' | 'fixed_rv',
  count: number,
): VarianceBucket[] {
  const all = Array.from(stds, (_, group) => group);
  if (all.length === 0) return [];
  const parts = mode === 'quantile' ? quantiles(stds, all, Math.min(count, all.length)) : byBounds(stds, all);
  const named = parts.map((groups, i) => ({ name: `bucket_${i + 1}`, groups }));
  return [...named.filter(({ groups }) => groups.length > 0), { name: 'all', groups: all }];
}

function quantiles(stds: ArrayLike<number>, all: readonly number[], count: number): number[][] {
  const ascending = all.toSorted((a, b) => stds[a] - stds[b] || a - b);
  const size = Math.floor(all.length / count);
  return Array.from({ length: count }, (_, i) =>
    ascending.slice(i * size, i === count - 1 ? undefined : (i + 1) * size),
  );
}

const byBounds = (stds: ArrayLike<number>, all: readonly number[]): number[][] =>
  fixedBounds.map((from, i) =>
    all.filter(group => stds[group] >= from && !(stds[group] >= (fixedBounds[i + 1] ?? Infinity))),
  );
