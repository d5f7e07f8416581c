// Reduces a curve of up to 100,000 values for drawing. The curve is divided into equal parts, and only the minimum and
// maximum of each part remain, so that every spike stays visible. The newest values remain unchanged. Pure functions on
// columns; a row without a value is NaN. The functions that smooth curves are in smoothing.ts.

/** Selected rows of a column with their values. */
export interface CurvePoints {
  /** Ascending row numbers. */
  rows: Int32Array;
  values: Float64Array;
}

/** Number of newest rows whose values remain unchanged in an overview. */
const newestRows = 64;

/**
 * Divides all rows except the newest 64 into `parts` equal parts. Returns the lowest and the highest value of each
 * part, and all values of the newest 64 rows, sorted by row. Values that are NaN are omitted.
 */
export function overviewOf(column: Float64Array, parts: number): CurvePoints {
  const split = Math.max(0, column.length - newestRows);
  const rows: number[] = [];
  for (let part = 0; part < parts; part++) {
    const [from, to] = [Math.floor((part * split) / parts), Math.floor(((part + 1) * split) / parts)];
    let [low, high] = [-1, -1];
    let [lowest, highest] = [Infinity, -Infinity];
    for (let row = from; row < to; row++) {
      const value = column[row]; // comparisons with NaN are false
      if (value < lowest) {
        lowest = value;
        low = row;
      }
      if (value > highest) {
        highest = value;
        high = row;
      }
    }
    if (low >= 0) rows.push(Math.min(low, high));
    if (low !== high) rows.push(Math.max(low, high));
  }
  for (let row = split; row < column.length; row++) if (!Number.isNaN(column[row])) rows.push(row);
  return { rows: Int32Array.from(rows), values: Float64Array.from(rows, row => column[row]) };
}
