// Operations on lists of data-dependent length. Spread arguments use stack per element: a call with about 120,000 of
// them fails with "Maximum call stack size exceeded". eslint.config.js therefore forbids `push(...list)` and similar
// calls in favour of these functions.

/** Appends all items to the list. */
export function appendAll<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** Replaces the elements from index `from` on with the items. */
export function replaceTail<T>(list: T[], from: number, items: Iterable<T>): void {
  list.splice(from);
  appendAll(list, items);
}

/** Returns the maximum, at least `floor`; −∞ without values or floor, NaN if a value is NaN (like Math.max). */
export function maximum(values: Iterable<number>, floor = -Infinity): number {
  let most = floor;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** Returns the minimum, at most `ceiling`; ∞ without values or ceiling, NaN if a value is NaN (like Math.min). */
export function minimum(values: Iterable<number>, ceiling = Infinity): number {
  let least = ceiling;
  for (const value of values) least = Math.min(least, value);
  return least;
}
