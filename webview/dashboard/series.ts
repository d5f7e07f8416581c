// A run's numbers as columns: one row a line of metrics.jsonl, one Float64Array a key, NaN where a line has no such key.
// Invariant: steps grow from row to row; a line whose step is already there takes the place of that row and all after it, as a
// resume from a checkpoint truncates the metric log.
import type { DashboardSnapshot } from '../../extension/protocol/pages';
import type { MetricsLine } from '../../extension/protocol/run-folder';

const notMetrics = new Set(['step', 'time']);

export class SeriesStore {
  private rows = 0;
  private capacity = 0;
  private stepColumn: Float64Array = new Float64Array(0);
  private columns = new Map<string, Float64Array>();
  /** Grows with every change, for caches. */
  revision = 0;

  get length(): number {
    return this.rows;
  }

  /** Steps of the rows, growing. A view: valid until the next change. */
  get steps(): Float64Array {
    return this.stepColumn.subarray(0, this.rows);
  }

  /** Metric keys in the order in which they first came. */
  get keys(): string[] {
    return [...this.columns.keys()];
  }

  has(key: string): boolean {
    return this.columns.has(key);
  }

  /** Values of a key by row, NaN where missing; undefined for an unknown key. A view: valid until the next change. */
  column(key: string): Float64Array | undefined {
    return this.columns.get(key)?.subarray(0, this.rows);
  }

  /** Takes a whole snapshot in the place of what was there. */
  load({ steps, series }: Pick<DashboardSnapshot, 'steps' | 'series'>): void {
    this.rows = steps.length;
    this.capacity = this.rows;
    this.stepColumn = Float64Array.from(steps);
    this.columns = new Map(
      Object.entries(series)
        .filter(([key]) => !notMetrics.has(key))
        .map(([key, values]) => [key, withLength(values, this.rows)]),
    );
    this.revision++;
  }

  /** Appends lines in their order. */
  append(lines: readonly MetricsLine[]): void {
    for (const line of lines) {
      const row = this.rowFrom(line.step);
      this.rows = row + 1;
      this.reserve(this.rows);
      this.stepColumn[row] = line.step;
      for (const column of this.columns.values()) column[row] = Number.NaN;
      for (const [key, value] of Object.entries(line)) {
        if (typeof value === 'number' && !notMetrics.has(key)) this.writable(key)[row] = value;
      }
    }
    this.revision++;
  }

  /** The first row whose step is at or after `step`; the number of rows when there is none. */
  rowFrom(step: number): number {
    return lowerBound(this.steps, step);
  }

  private writable(key: string): Float64Array {
    let column = this.columns.get(key);
    if (!column) {
      column = new Float64Array(this.capacity).fill(Number.NaN);
      this.columns.set(key, column);
    }
    return column;
  }

  private reserve(rows: number): void {
    if (rows <= this.capacity) return;
    this.capacity = Math.max(64, rows, this.capacity * 2);
    this.stepColumn = withLength(this.stepColumn, this.capacity);
    for (const [key, column] of this.columns) this.columns.set(key, withLength(column, this.capacity));
  }
}

/** The first index of a growing array whose value is at or above `value`. */
export function lowerBound(sorted: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A copy of the given length, NaN behind its end; null, which JSON makes of NaN, counts as NaN. */
function withLength(values: ArrayLike<number | null>, length: number): Float64Array {
  const copy = new Float64Array(length).fill(Number.NaN);
  const count = Math.min(length, values.length);
  for (let i = 0; i < count; i++) copy[i] = values[i] ?? Number.NaN;
  return copy;
}
