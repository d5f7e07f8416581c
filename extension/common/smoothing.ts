// Smooths curves by an exponential moving average. Pure functions on columns; a row without a value is NaN.

/**
 * Exponential moving average over the finite values. The weighted sum is divided by the sum of the weights (bias
 * correction). The weight of a value decays with every row, whether or not the row has a value. A metric logged every
 * tenth step is therefore smoothed over the same number of rows as a metric logged every step. Incremental: values are
 * added one at a time.
 */
export class MovingAverage {
  private mean = 0;
  private weight = 0;
  private last = 0;

  /** @param factor decay per row, 0 (off) … 0.99 */
  constructor(private readonly factor: number) {}

  /** Returns the average over all values up to this row; NaN if this row has no value. */
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

/**
 * Smooths `values`, whose first entry belongs to row `first`. `average` must already contain the values of all earlier
 * rows.
 */
export const smoothOn = (values: Float64Array, average: MovingAverage, first: number): Float64Array =>
  values.map((value, index) => average.next(first + index, value));
