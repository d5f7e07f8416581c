// Reduces a curve of up to 100,000 values for drawing. The reduced curve contains the minimum and maximum of each part,
// so that every spike stays visible, and the newest values unchanged. Other functions smooth curves. Pure functions on
// columns; a row without a value is NaN.

/** Selected rows of a column with their values. */
export interface CurvePoints {
  /** Ascending row numbers. */
  rows: Int32Array;
  values: Float64Array;
}

/** Number of newest rows whose values an overview contains unchanged. */
const newestRows = 64;

/**
 * Divides a column into `parts` equal parts. Returns the minimum and the maximum finite value of each part, in row
 * order, and all finite values in the newest 64 rows.
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

/**
 * Exponential moving average over the finite values, with bias correction (divided by the accumulated weight). The
 * weight of a value decays with every row, whether or not the row has a value. A metric logged every tenth step is
 * therefore smoothed over the same number of rows as a metric logged every step. Incremental: values are added one at a
 * time.
 */
export class MovingAverage {
  private mean = 0;
  private weight = 0;
  private last = 0;

  /** @param factor decay per row, 0 (off) … 0.99 */
  constructor(private readonly factor: number) {}

  /** Returns the average up to the value of this row, NaN if the row has no value. */
  next(row: number, value: number): number {
    if (!Number.isFinite(value)) return Number.NaN;
    const gap = row - this.last;
    const kept = gap <= 1 ? this.factor : this.factor ** gap;
    this.mean = this.mean * kept + value * (1 - this.factor);
    this.weight = this.weight * kept + (1 - this.factor);
    this.last = row;
    return this.mean / this.weight;
  }
}

/** Returns the smoothed column. If the factor is 0, returns the same column. */
export const smooth = (column: Float64Array, factor: number): Float64Array =>
  factor <= 0 ? column : smoothOn(column, new MovingAverage(factor), 0);

/** Smooths the values of the rows from `first` on. The values of all earlier rows must have been added to `average`. */
export const smoothOn = (values: Float64Array, average: MovingAverage, first: number): Float64Array =>
  values.map((value, index) => average.next(first + index, value));
