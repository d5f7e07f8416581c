// How strongly the configuration keys of a sweep are related to a result. Two measures per key: Spearman's rank
// correlation, which has a sign but sees only monotone relations of one key, and the permutation importance in a random
// forest (regression-forest.ts), which also sees others. Keys whose values always change together cannot be told apart,
// so they share one importance. Pure functions: equal inputs give equal results.
import { rankCorrelation, ranksOf } from '../../../extension/common/rank-correlation';
import { forestFit } from './regression-forest';

/** The values of a key, one per run. */
export interface KeyColumn {
  readonly key: string;
  /** Numbers; for a key with other values, the index of the value in `names`. */
  readonly values: readonly number[];
  /** The distinct values, numbers first; null if all values are numbers. */
  readonly names: readonly string[] | null;
}

export interface KeyImportance {
  readonly key: string;
  /** Spearman's rank correlation, −1 to 1; null if the key has more than two values that are not numbers. */
  readonly correlation: number | null;
  /** Permutation importance, 0 or more: the increase of the squared error, divided by the variance of the results. */
  readonly importance: number;
  /** Other keys whose values change in the same runs, in the same or the opposite order. */
  readonly together: readonly string[];
}

export interface KeyImportances {
  /** One per key, in the order of the columns. */
  readonly keys: readonly KeyImportance[];
  /** Share of the variance that the keys predict for runs that a tree has not seen (R²); 0 or less if none. */
  readonly explained: number;
}

/** Least number of runs for which importances are computed. */
export const leastRuns = 8;

/** Returns the column of a key from its texts. */
export function keyColumn(key: string, texts: readonly string[]): KeyColumn {
  const numbers = texts.map(numberIn);
  if (numbers.every(Number.isFinite)) return { key, values: numbers, names: null };
  const names = [...new Set(texts)].sort(byNumberOrName);
  return { key, values: texts.map(text => names.indexOf(text)), names };
}

const numberIn = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text));

function byNumberOrName(a: string, b: string): number {
  const [x, y] = [numberIn(a), numberIn(b)].map(value => (Number.isFinite(value) ? value : Infinity));
  if (x !== y) return x < y ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns the importance of each key; null for fewer than `leastRuns` results or equal results. */
export function keyImportances(columns: readonly KeyColumn[], results: readonly number[]): KeyImportances | null {
  if (results.length < leastRuns || new Set(results).size < 2) return null;
  const patterns = columns.map(patternOf);
  const distinct = [...new Set(patterns)];
  const { importances, explained } = forestFit(
    distinct.map(pattern => columns[patterns.indexOf(pattern)].values),
    results,
  );
  const keys = columns.map(({ key, values, names }, i) => ({
    key,
    correlation: names && names.length > 2 ? null : rankCorrelation(values, results),
    importance: importances[distinct.indexOf(patterns[i])],
    together: columns.flatMap((other, j) => (j !== i && patterns[j] === patterns[i] ? [other.key] : [])),
  }));
  return { keys, explained };
}

/** Returns a text that is equal for columns with the same order of values, or with the opposite order. */
function patternOf({ values }: KeyColumn): string {
  const [up, down] = [ranksOf(values), ranksOf(values.map(value => -value))].map(ranks => ranks.join(' '));
  return up < down ? up : down;
}
