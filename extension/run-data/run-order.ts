// Order and groups of the run table. A sort order is a list of column identifiers, the most significant first; a
// leading `-` sorts a column from high to low. Numbers precede texts, and runs without a value are last in both
// directions. The sort is stable. Pure functions.
import type { Cell } from './table-columns';

export interface SortKey {
  /** Identifier of a column (table-columns.ts). */
  readonly by: string;
  readonly down: boolean;
}

export const parseSortKey = (text: string): SortKey =>
  text.startsWith('-') ? { by: text.slice(1), down: true } : { by: text, down: false };

export const formatSortKey = ({ by, down }: SortKey): string => (down ? `-${by}` : by);

/**
 * Returns the sort order after the user has chosen a column: from high to low first, then from low to high, then
 * unsorted. With `add`, the columns chosen earlier stay more significant; without it, they are removed.
 */
export function nextSort(sort: readonly string[], by: string, add: boolean): string[] {
  const now = sort.map(parseSortKey).find(key => key.by === by);
  const next = !now ? [`-${by}`] : now.down ? [by] : [];
  if (!add) return next;
  const at = sort.findIndex(text => parseSortKey(text).by === by);
  return at < 0 ? [...sort, ...next] : [...sort.slice(0, at), ...next, ...sort.slice(at + 1)];
}

/** Compares two values: numbers by size, then texts in natural order (`lr2` before `lr10`), then missing values. */
export function compareCells(a: Cell, b: Cell): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return collator.compare(a, b);
  return rank(a) - rank(b);
}

const rank = (cell: Cell): number => (typeof cell === 'number' ? 0 : typeof cell === 'string' ? 1 : 2);
const collator = new Intl.Collator('en', { numeric: true });

/** Returns the rows in a sort order; rows that are equal in all columns keep their order. */
export function sortRows<R>(
  rows: readonly R[],
  sort: readonly string[],
  cell: (row: R, column: string) => Cell,
): readonly R[] {
  const keys = sort.map(parseSortKey);
  if (keys.length === 0) return rows;
  const decorated = rows.map(row => ({ row, cells: keys.map(({ by }) => cell(row, by)) }));
  decorated.sort((a, b) => {
    for (const [i, { down }] of keys.entries()) {
      const [left, right] = [a.cells[i], b.cells[i]];
      const order = compareCells(left, right);
      if (order !== 0) return down && left !== null && right !== null ? -order : order;
    }
    return 0;
  });
  return decorated.map(({ row }) => row);
}

export interface RowGroup<R> {
  readonly value: Cell;
  readonly rows: readonly R[];
}

/** Returns the rows by their value in a column. Groups are in the order of their values; rows keep their order. */
export function groupRows<R>(rows: readonly R[], cell: (row: R) => Cell): RowGroup<R>[] {
  const groups = new Map<Cell, R[]>();
  for (const row of rows) {
    const value = cell(row);
    const known = groups.get(value);
    if (known) known.push(row);
    else groups.set(value, [row]);
  }
  return [...groups]
    .map(([value, members]) => ({ value, rows: members }))
    .sort((a, b) => compareCells(a.value, b.value));
}
