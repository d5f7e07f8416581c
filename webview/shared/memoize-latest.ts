// Caches the last result of a function. Data that a cached function derives from a page's state therefore stays the
// same object while the function's inputs are unchanged.

/** Returns a function that calls `compute` only if an argument has changed since the last call. */
export function latest<A extends readonly unknown[], R>(compute: (...args: A) => R): (...args: A) => R {
  let known: { args: A; result: R } | undefined;
  return (...args) => {
    if (!known || !areSame(args, known.args)) known = { args, result: compute(...args) };
    return known.result;
  };
}

/** Whether two lists have identical elements (`Object.is`) in the same order. */
export const areSame = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((each, i) => Object.is(each, b[i]));
