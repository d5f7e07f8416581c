// One metric over the rows of a run. Values are only appended. For each block of 64 rows, an index stores the rows of
// the lowest and the highest value. With this index, a drawing of 100,000 rows reads only a few thousand of them. NaN
// marks a row without a value. Colours and dashes of curves: lineStyle in plot-data.ts.
import type { CurvePoints } from '../../common/curves';

export interface Point {
  x: number;
  /** NaN breaks the line. */
  y: number;
}

const blockRows = 64;

export class Curve {
  private data = new Float64Array(blockRows);
  private rows = 0;
  /** For each block, the rows of the lowest and the highest finite value; −1 if all values of the block are NaN. */
  private low = new Int32Array(1).fill(-1);
  private high = new Int32Array(1).fill(-1);
  /**
   * Histogram of the distances in rows between neighbouring finite values. `alike` contains the latest distance and the
   * number of times that this distance has occurred in succession. They are added to the histogram only when a
   * different distance follows or when the median is read.
   */
  private readonly spacings = new Map<number, number>();
  private alike = { spacing: 1, count: 0 };
  private lastFiniteRow = -1;
  /**
   * Number of rows that two neighbouring values may be apart; if they are farther apart, the line is broken between
   * them. Undefined means 1.5 times `usualSpacing`.
   */
  private fixedHole: number | undefined;

  /** Returns a curve with one row per value. */
  static of(values: Float64Array): Curve {
    const curve = new Curve();
    curve.reserve(values.length);
    for (const value of values) curve.push(value);
    return curve;
  }

  /** Returns a curve of `length` rows with values only at `rows`; the line is not broken between these rows. */
  static overview({ rows, values }: CurvePoints, length: number): Curve {
    const curve = new Curve();
    curve.reserve(length);
    curve.data.fill(Number.NaN, 0, length);
    rows.forEach((row, i) => {
      if (row >= length) return;
      curve.rows = row; // `push` writes to this row; the rows before stay NaN
      curve.push(values[i]);
    });
    curve.rows = length;
    curve.fixedHole = Infinity;
    return curve;
  }

  get length(): number {
    return this.rows;
  }

  /** All values, as a view of the internal array; invalid after the next `push`. */
  get values(): Float64Array {
    return this.data.subarray(0, this.rows);
  }

  push(value: number): void {
    const row = this.rows++;
    this.reserve(this.rows);
    this.data[row] = value;
    if (!Number.isFinite(value)) return;
    const block = Math.floor(row / blockRows);
    if (this.low[block] < 0 || value < this.data[this.low[block]]) this.low[block] = row;
    if (this.high[block] < 0 || value > this.data[this.high[block]]) this.high[block] = row;
    if (this.lastFiniteRow >= 0) {
      const spacing = row - this.lastFiniteRow;
      if (spacing === this.alike.spacing) this.alike.count++;
      else {
        this.countSpacings();
        this.alike = { spacing, count: 1 };
      }
    }
    this.lastFiniteRow = row;
  }

  /** Returns the row of the latest finite value at or before `row`; −1 if there is none. */
  lastFinite(row = this.rows - 1): number {
    let at = Math.min(row, this.rows - 1);
    while (at >= 0 && !Number.isFinite(this.data[at])) {
      at--;
      while (at >= blockRows && at % blockRows === blockRows - 1 && this.low[Math.floor(at / blockRows)] < 0)
        at -= blockRows;
    }
    return at;
  }

  /** Returns the lowest and highest finite value of rows [from, to); null if there is none. */
  extent(from = 0, to = this.rows): { low: number; high: number } | null {
    const [low, high] = this.extremes(from, to);
    return low < 0 ? null : { low: this.data[low], high: this.data[high] };
  }

  /**
   * The median distance in rows between neighbouring finite values. If the number of distances is even, returns the
   * larger of the two middle distances. Returns 1 if the metric is logged at every row or has fewer than two values.
   */
  get usualSpacing(): number {
    this.countSpacings();
    let total = 0;
    for (const count of this.spacings.values()) total += count;
    let seen = 0;
    for (const [spacing, count] of [...this.spacings].sort(([a], [b]) => a - b)) {
      seen += count;
      if (seen * 2 > total) return spacing;
    }
    return 1;
  }

  /**
   * Returns the points to draw. [from, to] is divided into `buckets` equal parts. Each part contributes its lowest and
   * its highest value in row order, so that every spike is drawn. One value beyond each end is added, so that a zoomed
   * line reaches the edges of the plot. The line breaks where two values are more than 1.5 times `usualSpacing` apart.
   * If a metric is logged every tenth row, `usualSpacing` is ten rows, so its line does not break.
   * @param xs x values of the rows, increasing; at least one value for each row of the curve
   */
  points(xs: Float64Array, from: number, to: number, buckets: number): Point[] {
    const points: Point[] = [];
    const { data, rows } = this;
    const hole = this.fixedHole ?? this.usualSpacing * 1.5;
    const first = Math.max(0, this.lastFinite(lowerBound(xs, from, rows) - 1));
    let end = upperBound(xs, to, rows);
    while (end < rows && !Number.isFinite(data[end])) end++;
    end = Math.min(rows, end + 1);
    let last = -1;
    let slack = 0; // rows per bucket; decimation can widen the distance between two points by this number
    const put = (row: number) => {
      if (last >= 0 && row - last > hole + slack) points.push({ x: (xs[last] + xs[row]) / 2, y: Number.NaN });
      points.push({ x: xs[row], y: data[row] });
      last = row;
    };
    if (end - first <= buckets * 4) {
      for (let row = first; row < end; row++) if (Number.isFinite(data[row])) put(row);
      return points;
    }
    const width = (to - from) / buckets;
    for (let bucket = -1, row = first; row < end && bucket <= buckets; bucket++) {
      const next = bucket === buckets ? end : Math.min(end, lowerBound(xs, from + (bucket + 1) * width, rows));
      if (next <= row) continue;
      const [low, high] = this.extremes(row, next);
      slack = next - row;
      if (low >= 0) put(Math.min(low, high));
      if (low !== high) put(Math.max(low, high));
      row = next;
    }
    return points;
  }

  /** Returns the rows of the lowest and the highest finite value in [from, to); −1 if all values are NaN. */
  private extremes(from: number, to: number): [low: number, high: number] {
    const { data } = this;
    let low = -1;
    let high = -1;
    const see = (row: number) => {
      const value = data[row];
      if (!Number.isFinite(value)) return;
      if (low < 0 || value < data[low]) low = row;
      if (high < 0 || value > data[high]) high = row;
    };
    let row = from;
    while (row < to) {
      if (row % blockRows === 0 && row + blockRows <= to) {
        const block = row / blockRows;
        if (this.low[block] >= 0) {
          see(this.low[block]);
          see(this.high[block]);
        }
        row += blockRows;
      } else see(row++);
    }
    return [low, high];
  }

  private countSpacings(): void {
    const { spacing, count } = this.alike;
    if (count > 0) this.spacings.set(spacing, (this.spacings.get(spacing) ?? 0) + count);
    this.alike.count = 0;
  }

  private reserve(rows: number): void {
    if (rows <= this.data.length) return;
    const capacity = Math.ceil(Math.max(rows, this.data.length * 2) / blockRows) * blockRows;
    const grow = <T extends Float64Array | Int32Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    this.data = grow(this.data, new Float64Array(capacity));
    this.low = grow(this.low, new Int32Array(capacity / blockRows).fill(-1));
    this.high = grow(this.high, new Int32Array(capacity / blockRows).fill(-1));
  }
}

/** Returns the first index of a sorted array whose value is at or above `value`. */
export function lowerBound(sorted: ArrayLike<number>, value: number, length = sorted.length): number {
  let low = 0;
  let high = Math.min(length, sorted.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the first index of a sorted array whose value is above `value`. */
function upperBound(sorted: ArrayLike<number>, value: number, length: number): number {
  let at = lowerBound(sorted, value, length);
  while (at < length && sorted[at] === value) at++;
  return at;
}
