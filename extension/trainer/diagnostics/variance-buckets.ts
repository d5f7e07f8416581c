// Buckets of prompt groups by the deviation of their scores, for the gradient analysis (RAGEN-2: the task's gradient is
// bounded by that deviation, the regularisers' is not). Pure.

/** A bucket: its name in metrics, and the places of its groups among those given. */
export interface VarianceBucket {
  name: string;
  groups: number[];
}

/** Bounds of the fixed buckets: from each on, up to the next. */
const fixedBounds = [0, 1, 2, 3, 4, 5];

/**
 * `quantile`: at most `count` buckets of like size from the least deviation up, what is left over in the last one.
 * `fixed_rv`: by the bounds 0, 1, 2, 3, 4, 5, without empty ones. After them `all`. None where there is no group.
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
