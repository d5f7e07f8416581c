// Finds metrics that add nothing to a page: metrics with the same value at every step, and metrics that equal another
// metric at every step. Pure functions. A column is given in slices, so that long columns need not be copied; all
// columns of a table have slices of the same lengths.
import type { MetricNumbers } from './metric-segments';

export interface RedundantColumns {
  /** The value of each constant metric. */
  readonly constant: Readonly<Record<string, number>>;
  /** Sets of metrics that are equal at every row and not constant. */
  readonly equal: readonly (readonly string[])[];
}

/** A column in slices; a slice is undefined if the metric has no value in it. NaN marks a row without a value. */
export type ColumnSlices = readonly (Float64Array | undefined)[];

export const noneRedundant: RedundantColumns = { constant: {}, equal: [] };

/** Number of values from which a metric can be called constant or equal to another. */
const leastValues = 3;

/** Returns the redundant metrics of a table. The first key of each equal set comes first in `columns`. */
export function redundantColumns(columns: Iterable<readonly [key: string, slices: ColumnSlices]>): RedundantColumns {
  const constant: Record<string, number> = {};
  const candidates = new Map<string, { key: string; slices: ColumnSlices }[]>();
  for (const [key, slices] of columns) {
    const { values, isConstant, first, last } = scan(slices);
    if (values < leastValues) continue;
    if (isConstant) {
      constant[key] = first;
      continue;
    }
    const signature = `${first} ${last}`;
    const alike = candidates.get(signature);
    if (alike) alike.push({ key, slices });
    else candidates.set(signature, [{ key, slices }]);
  }
  const equal: string[][] = [];
  for (const alike of candidates.values()) {
    const sets: { keys: string[]; slices: ColumnSlices }[] = [];
    for (const { key, slices } of alike) {
      const same = sets.find(set => isSame(set.slices, slices));
      if (same) same.keys.push(key);
      else sets.push({ keys: [key], slices });
    }
    for (const { keys } of sets) if (keys.length > 1) equal.push(keys);
  }
  return { constant, equal };
}

/** Returns what is still redundant after a further line; the same object if nothing changed. */
export function afterLine(before: RedundantColumns, line: MetricNumbers): RedundantColumns {
  const constants = Object.entries(before.constant);
  const kept = constants.filter(([key, value]) => !(key in line) || line[key] === value);
  const equal = before.equal.flatMap(keys => {
    const byValue = new Map<number | undefined, string[]>();
    for (const key of keys) byValue.set(line[key], [...(byValue.get(line[key]) ?? []), key]);
    return byValue.size === 1 ? [keys] : [...byValue.values()].filter(set => set.length > 1);
  });
  if (kept.length === constants.length && equal.every((keys, i) => keys === before.equal[i])) {
    if (equal.length === before.equal.length) return before;
  }
  return { constant: Object.fromEntries(kept), equal };
}

/**
 * Counts the finite values until two different values and `leastValues` values are found, so that a varying column is
 * not read to its end. `last` is the newest finite value.
 */
function scan(slices: ColumnSlices): { values: number; isConstant: boolean; first: number; last: number } {
  let values = 0;
  let first = Number.NaN;
  let isConstant = true;
  reading: for (const slice of slices) {
    if (!slice) continue;
    for (const value of slice) {
      if (Number.isNaN(value)) continue;
      if (values++ === 0) first = value;
      else if (value !== first) isConstant = false;
      if (!isConstant && values >= leastValues) break reading;
    }
  }
  return { values, isConstant, first, last: isConstant ? first : newest(slices) };
}

function newest(slices: ColumnSlices): number {
  for (let at = slices.length - 1; at >= 0; at--) {
    const value = slices[at]?.findLast(each => !Number.isNaN(each));
    if (value !== undefined) return value;
  }
  return Number.NaN;
}

function isSame(a: ColumnSlices, b: ColumnSlices): boolean {
  return a.every((slice, i) => {
    const other = b[i];
    const length = slice?.length ?? other?.length ?? 0;
    for (let row = 0; row < length; row++) {
      const [x, y] = [slice?.[row] ?? Number.NaN, other?.[row] ?? Number.NaN];
      if (x !== y && !(Number.isNaN(x) && Number.isNaN(y))) return false;
    }
    return true;
  });
}
