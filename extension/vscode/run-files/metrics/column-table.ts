// Metrics as columns of a growing table, which consists of complete segments followed by single lines. Pure data.
import { columnsOf, type MetricNumbers, type MetricSegment } from '../../../run-data/metric-segments';

/**
 * A table stored by columns. Steps increase from row to row; a line is skipped if its step is not greater than the last
 * step.
 */
export class ColumnTable {
  private readonly segments: { from: number; columns: Map<string, Float64Array> }[] = [];
  private lines: MetricNumbers[] = [];
  private inSegments = 0;
  private lastStep = -Infinity;
  private readonly known = new Set<string>();
  private readonly joined = new Map<string, { values: Float64Array; filled: number }>();

  get rows(): number {
    return this.inSegments + this.lines.length;
  }

  /** Keys in order of first occurrence, without `step`. */
  get keys(): string[] {
    return [...this.known].filter(key => key !== 'step');
  }

  /** Appends a segment. Returns false if the segment's steps do not continue the table. */
  addSegment({ rows, columns }: MetricSegment): boolean {
    const steps = columns.get('step');
    if (this.lines.length > 0 || !steps || rows === 0 || steps[0] <= this.lastStep) return false;
    this.segments.push({ from: this.inSegments, columns });
    this.inSegments += rows;
    this.lastStep = steps[rows - 1];
    for (const key of columns.keys()) this.known.add(key);
    return true;
  }

  addLine(line: MetricNumbers): void {
    if (line.step <= this.lastStep) return;
    this.lastStep = line.step;
    this.lines.push(line);
    for (const key in line) this.known.add(key);
  }

  /**
   * Number of lines that are not yet in a segment. `close` converts these lines to a segment and returns its columns.
   */
  get openLines(): number {
    return this.lines.length;
  }
  close(): Map<string, Float64Array> {
    const columns = columnsOf(this.lines);
    this.segments.push({ from: this.inSegments, columns });
    this.inSegments += this.lines.length;
    this.lines = [];
    return columns;
  }

  /**
   * Returns a key's values in all rows, with NaN for missing values. The result is a view that is valid until the table
   * grows.
   */
  column(key: string): Float64Array {
    const { rows } = this;
    let entry = this.joined.get(key);
    if (!entry || entry.values.length < rows) {
      const values = new Float64Array(Math.ceil(rows * 1.25) + 64).fill(Number.NaN);
      if (entry) values.set(entry.values.subarray(0, entry.filled));
      this.joined.set(key, (entry = { values, filled: entry?.filled ?? 0 }));
    }
    for (let i = this.segments.length - 1; i >= 0; i--) {
      const { from, columns } = this.segments[i];
      const column = columns.get(key);
      if (column) entry.values.set(column, from);
      if (from <= entry.filled) break;
    }
    for (let i = Math.max(0, entry.filled - this.inSegments); i < this.lines.length; i++) {
      entry.values[this.inSegments + i] = this.lines[i][key] ?? Number.NaN;
    }
    entry.filled = rows;
    return entry.values.subarray(0, rows);
  }

  /** Returns a key's values as one slice per segment and one for the lines after them, without copying segments. */
  slices(key: string): (Float64Array | undefined)[] {
    const lines = Float64Array.from(this.lines, line => line[key] ?? Number.NaN);
    return [...this.segments.map(({ columns }) => columns.get(key)), lines];
  }

  /** Yields the metrics of rows [from, to). */
  *lineRange(from: number, to: number): Generator<MetricNumbers> {
    let at = this.segments.findLastIndex(segment => segment.from <= from);
    for (let row = from; row < to; row++) {
      if (row >= this.inSegments) {
        yield this.lines[row - this.inSegments];
        continue;
      }
      if (row >= (this.segments[at + 1]?.from ?? Infinity)) at++;
      const line = {} as MetricNumbers;
      for (const [key, values] of this.segments[at].columns) {
        const value = values[row - this.segments[at].from];
        if (!Number.isNaN(value)) line[key] = value;
      }
      yield line;
    }
  }
}
