// Computes SVG paths in a unit square with the origin at the upper left. CSS stretches the square to the size of the
// drawing, so no layout measurement is needed. A very long series is divided into buckets, and only the minimum and the
// maximum of each bucket are drawn.
import { appendAll } from '../../../extension/common/lists';

/** Number of buckets into which a very long series is divided. */
const resolution = 400;

/** Returns a share (0 to 1) as a CSS percentage. */
export const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

/** Returns the latest finite value at or before a row; NaN if there is none. */
export function lastFinite(column: ArrayLike<number>, row: number): number {
  for (let i = Math.min(row, column.length - 1); i >= 0; i--) if (Number.isFinite(column[i])) return column[i];
  return NaN;
}

export interface Extent {
  low: number;
  high: number;
}

/** Returns the lowest and the highest finite value of all columns; null if there is none. */
export function extentOf(columns: readonly ArrayLike<number>[]): Extent | null {
  let [low, high] = [Infinity, -Infinity];
  for (const column of columns)
    for (let i = 0; i < column.length; i++) {
      if (!Number.isFinite(column[i])) continue;
      low = Math.min(low, column[i]);
      high = Math.max(high, column[i]);
    }
  return low <= high ? { low, high } : null;
}

/**
 * Returns the extent of a chart with lines and bounds. `own` is the extent of the lines alone; `all` is the extent of
 * lines and bounds. Returns the union of `own` and `all`. If this union is more than twice as wide as `own`, returns
 * `own`, because a distant bound would flatten the lines.
 */
export function withBounds(own: Extent | null, all: Extent | null): Extent | null {
  if (!own || !all) return own;
  const [low, high] = [Math.min(own.low, all.low), Math.max(own.high, all.high)];
  return high - low <= 2 * (own.high - own.low) ? { low, high } : own;
}

/** Converts a step or a value to a coordinate in the unit square. */
export type ToShare = (value: number) => number;
const spot = (x: number, y: number): string => `${x.toFixed(4)} ${y.toFixed(4)}`;

/**
 * Returns the SVG path of a line through the finite values. A NaN does not interrupt the line. A single value is drawn
 * as a dot.
 */
export function linePath(steps: readonly number[], column: ArrayLike<number>, x: ToShare, y: ToShare): string {
  const rows = thinned(column);
  if (rows.length === 1) return `M${spot(x(steps[rows[0]]), y(column[rows[0]]))}h0`;
  return rows.map((row, i) => `${i === 0 ? 'M' : 'L'}${spot(x(steps[row]), y(column[row]))}`).join('');
}

/** Returns the SVG path of an interval band: the area between the columns `low` and `high`. */
export function bandPath(
  steps: readonly number[],
  { low, high }: { low: ArrayLike<number>; high: ArrayLike<number> },
  x: ToShare,
  y: ToShare,
): string {
  const rows = thinned(high).filter(row => Number.isFinite(low[row]));
  if (rows.length < 2) return '';
  const edge = (column: ArrayLike<number>, order: readonly number[]) =>
    order.map(row => spot(x(steps[row]), y(column[row]))).join('L');
  return `M${edge(high, rows)}L${edge(low, rows.toReversed())}Z`;
}

/**
 * Returns the rows with a finite value. A long column is divided into `resolution` buckets, and only the rows of the
 * minimum and the maximum of each bucket are returned.
 */
export function thinned(column: ArrayLike<number>): number[] {
  const rows: number[] = [];
  for (let i = 0; i < column.length; i++) if (Number.isFinite(column[i])) rows.push(i);
  if (rows.length <= 2 * resolution) return rows;
  const kept: number[] = [];
  const size = rows.length / resolution;
  for (let bucket = 0; bucket < resolution; bucket++) {
    const some = rows.slice(Math.floor(bucket * size), Math.floor((bucket + 1) * size));
    const least = some.reduce((a, b) => (column[b] < column[a] ? b : a));
    const most = some.reduce((a, b) => (column[b] > column[a] ? b : a));
    appendAll(kept, least === most ? [least] : [Math.min(least, most), Math.max(least, most)]);
  }
  return kept;
}
