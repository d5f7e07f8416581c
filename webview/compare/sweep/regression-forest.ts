// A random forest of regression trees on bootstrap samples (Breiman 2001, "Random Forests"), with its out-of-bag R² and
// permutation importances: the increase of the out-of-bag squared error when the values of a column are permuted,
// divided by the variance of the results. Every split considers all columns, as scikit-learn's RandomForestRegressor
// does. The random numbers have a constant seed, so equal inputs give equal results. Pure functions.
import { seededRandom } from '../../../extension/common/seeded-random';

export interface ForestFit {
  /** Permutation importance of each column, 0 or more. */
  readonly importances: readonly number[];
  /** Out-of-bag R²: 1 is a perfect prediction; 0 or less is no better than the mean. */
  readonly explained: number;
}

const trees = 100;
const deepest = 6;
const seed = 20_010_132;

/** A column as indices into its sorted distinct values. */
interface Levels {
  readonly values: readonly number[];
  readonly indices: readonly number[];
}

interface Split {
  readonly column: number;
  /** Values up to this threshold go to `low`. */
  readonly threshold: number;
}

type Tree = { readonly value: number } | (Split & { readonly low: Tree; readonly high: Tree });

/**
 * Fits a forest. Each column has one value per result. At least one result must differ from the others.
 */
export function forestFit(columns: readonly (readonly number[])[], results: readonly number[]): ForestFit {
  const count = results.length;
  const random = seededRandom(seed);
  const levels = columns.map(levelsOf);
  const mean = results.reduce((sum, value) => sum + value, 0) / count;
  const centred = results.map(value => value - mean);
  const variance = centred.reduce((sum, value) => sum + value * value, 0) / count;
  const increases = columns.map(() => 0);
  const predictions = results.map(() => ({ sum: 0, count: 0 }));
  let tested = 0;
  for (let i = 0; i < trees; i++) {
    const sample = Array.from({ length: count }, () => Math.floor(random() * count));
    const drawn = new Set(sample);
    const rest = [...results.keys()].filter(row => !drawn.has(row));
    const tree = grownTree(sample, levels, centred, 0);
    const shuffles = columns.map(() => shuffled(rest, random));
    tested += rest.length;
    for (const [at, row] of rest.entries()) {
      const own = (column: number): number => columns[column][row];
      const predicted = prediction(tree, own);
      predictions[row].sum += predicted;
      predictions[row].count++;
      const error = (predicted - centred[row]) ** 2;
      for (const [column, values] of columns.entries()) {
        const other = values[shuffles[column][at]];
        const permuted = prediction(tree, each => (each === column ? other : own(each)));
        increases[column] += (permuted - centred[row]) ** 2 - error;
      }
    }
  }
  const known = predictions.flatMap((all, row) => (all.count > 0 ? [{ row, value: all.sum / all.count }] : []));
  const error = known.reduce((sum, { row, value }) => sum + (value - centred[row]) ** 2, 0) / known.length;
  return {
    importances: increases.map(increase => Math.max(0, increase / tested / variance)),
    explained: 1 - error / variance,
  };
}

function levelsOf(column: readonly number[]): Levels {
  const values = [...new Set(column)].sort((a, b) => a - b);
  const at = new Map(values.map((value, i) => [value, i]));
  return { values, indices: column.map(value => at.get(value)!) };
}

function grownTree(
  rows: readonly number[],
  columns: readonly Levels[],
  results: readonly number[],
  depth: number,
): Tree {
  const split = depth < deepest && rows.length > 1 ? bestSplit(rows, columns, results) : null;
  if (!split) return { value: rows.reduce((sum, row) => sum + results[row], 0) / rows.length };
  const { values, indices } = columns[split.column];
  const isLow = (row: number): boolean => values[indices[row]] <= split.threshold;
  const side = (own: readonly number[]): Tree => grownTree(own, columns, results, depth + 1);
  return { ...split, low: side(rows.filter(isLow)), high: side(rows.filter(row => !isLow(row))) };
}

/**
 * Returns the split with the smallest squared error, between two neighbouring values of a column; null if no split is
 * better than none. Of equal splits, the first column and the lowest threshold win.
 */
function bestSplit(rows: readonly number[], columns: readonly Levels[], results: readonly number[]): Split | null {
  const total = rows.reduce((sum, row) => sum + results[row], 0);
  // The squared error is a constant minus the sum, over both sides, of (sum of results)² / number of rows.
  const none = (total * total) / rows.length;
  const scale = rows.reduce((sum, row) => sum + results[row] ** 2, 0);
  let best = none + scale * 1e-12;
  let split: Split | null = null;
  for (const [column, { values, indices }] of columns.entries()) {
    const sums = new Float64Array(values.length);
    const counts = new Uint32Array(values.length);
    for (const row of rows) {
      sums[indices[row]] += results[row];
      counts[indices[row]]++;
    }
    let [sum, count, before] = [0, 0, -1];
    for (let level = 0; level < values.length; level++) {
      if (counts[level] === 0) continue;
      if (before >= 0) {
        const gain = (sum * sum) / count + (total - sum) ** 2 / (rows.length - count);
        if (gain > best) {
          best = gain + scale * 1e-12;
          split = { column, threshold: (values[before] + values[level]) / 2 };
        }
      }
      sum += sums[level];
      count += counts[level];
      before = level;
    }
  }
  return split;
}

function prediction(tree: Tree, valueOf: (column: number) => number): number {
  let node = tree;
  while (!('value' in node)) node = valueOf(node.column) <= node.threshold ? node.low : node.high;
  return node.value;
}

/** Returns a random permutation (Fisher and Yates). */
function shuffled(rows: readonly number[], random: () => number): number[] {
  const list = [...rows];
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}
