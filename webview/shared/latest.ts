// Keeps the result of a function for as long as its arguments stay the same, so that what is derived from a page's
// state keeps its identity over renders that do not concern it.

/** The function, computed again only after an argument has changed. */
export function latest<A extends readonly unknown[], R>(compute: (...args: A) => R): (...args: A) => R {
  let known: { args: A; result: R } | undefined;
  return (...args) => {
    if (!known || !areSame(args, known.args)) known = { args, result: compute(...args) };
    return known.result;
  };
}

/** Whether two lists have the same elements. */
export const areSame = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((each, i) => Object.is(each, b[i]));
