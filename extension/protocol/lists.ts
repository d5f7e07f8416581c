// Operations on lists whose length depends on data. A spread argument takes stack for each element: a call with some 120,000 of them ends
// in "Maximum call stack size exceeded", so that eslint.config.js refuses `push(...list)` and its like in favour of these.

/** Appends all items to the end of the list. */
export function appendAll<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** Puts the items in place of those from index `from` on. */
export function replaceTail<T>(list: T[], from: number, items: Iterable<T>): void {
  list.splice(from);
  appendAll(list, items);
}

/** The largest value, at least `floor`; −∞ for no values and no floor, NaN where one is NaN (as Math.max). */
export function maximum(values: Iterable<number>, floor = -Infinity): number {
  let most = floor;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** The smallest value, at most `ceiling`; ∞ for no values and no ceiling, NaN where one is NaN (as Math.min). */
export function minimum(values: Iterable<number>, ceiling = Infinity): number {
  let least = ceiling;
  for (const value of values) least = Math.min(least, value);
  return least;
}
