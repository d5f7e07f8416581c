// Operations on lists whose length depends on data. A spread argument needs stack space for every element: a call with
// about 120,000 elements fails with "Maximum call stack size exceeded". eslint.config.js therefore forbids
// `push(...list)` and similar calls; use these functions instead.

/** Appends all items to the list. */
export function appendAll<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** Replaces the elements from index `from` on with the items. */
export function replaceTail<T>(list: T[], from: number, items: Iterable<T>): void {
  list.splice(from);
  appendAll(list, items);
}

/**
 * Returns the largest value, but at least `floor`. Without values, returns `floor`. Like Math.max, returns NaN if a
 * value is NaN.
 */
export function maximum(values: Iterable<number>, floor = -Infinity): number {
  let most = floor;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/**
 * Returns the smallest value, but at most `ceiling`. Without values, returns `ceiling`. Like Math.min, returns NaN if a
 * value is NaN.
 */
export function minimum(values: Iterable<number>, ceiling = Infinity): number {
  let least = ceiling;
  for (const value of values) least = Math.min(least, value);
  return least;
}

/** Returns the mean; 0 without values. */
export const mean = (values: readonly number[]): number =>
  values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;

/** Splits a list into consecutive parts of at most `most` items; without `most`, into one part. */
export function parted<T>(list: readonly T[], most = Infinity): (readonly T[])[] {
  if (list.length <= most) return [list];
  return Array.from({ length: Math.ceil(list.length / most) }, (_, k) => list.slice(k * most, (k + 1) * most));
}
