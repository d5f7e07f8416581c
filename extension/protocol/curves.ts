// What a curve is drawn of, where its 100,000 values are too many to be sent at once: the lowest and highest of each part, so that no
// spike is lost, and the newest as they are. And its smoothed form. Pure functions on columns, NaN where a line lacks the key.

/** Values of some rows of a column. */
export interface CurvePoints {
  /** Growing row numbers. */
  rows: Int32Array;
  values: Float64Array;
}

/** Rows at the end that an overview has one by one: the last value and its changes are exact. */
const newestRows = 64;

/** The lowest and highest finite value of each of `parts` equal parts of a column, in their order, and all of the newest 64. */
export function overviewOf(column: Float64Array, parts: number): CurvePoints {
  const split = Math.max(0, column.length - newestRows);
  const rows: number[] = [];
  for (let part = 0; part < parts; part++) {
    const [from, to] = [Math.floor((part * split) / parts), Math.floor(((part + 1) * split) / parts)];
    let [low, high] = [-1, -1];
    let [lowest, highest] = [Infinity, -Infinity];
    for (let row = from; row < to; row++) {
      const value = column[row]; // NaN is neither lower nor higher
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
 * Exponential moving average over the finite values, with the start's bias taken out (divided by the weight that the average has so far).
 * The past fades with the rows between two values, so that a metric of every tenth step is smoothed over the same span as its neighbours.
 * It goes on where it stopped: values may be taken one by one.
 */
export class MovingAverage {
  private mean = 0;
  private weight = 0;
  private last = 0;

  /** @param factor weight of the past one row on, 0 (off) … 0.99 */
  constructor(private readonly factor: number) {}

  /** The average up to the value of this row, NaN where it has none. */
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

/** A whole column smoothed; the column itself where the factor is 0. */
export const smooth = (column: Float64Array, factor: number): Float64Array =>
  factor <= 0 ? column : smoothOn(column, new MovingAverage(factor), 0);

/** Values of rows from `first` on, smoothed by an average that has seen those before. */
export const smoothOn = (values: Float64Array, average: MovingAverage, first: number): Float64Array =>
  values.map((value, place) => average.next(first + place, value));
