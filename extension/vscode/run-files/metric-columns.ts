// Metrics of a run by columns, kept up to date with its growing metrics.jsonl. Most of a long run comes from
// `metrics.columns`, which the trainer writes beside it (run-data/metric-segments.ts), the rest from the lines. If the
// trainer wrote no columns, the lines are read in slices that yield to the event loop, and the result is cached in our
// own folder. metrics.jsonl is authoritative: columns that do not match it are ignored.
import { createHash } from 'node:crypto';
import { appendFile, mkdir, truncate, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import { readBounded } from '../../node/bounded-file';
import { jsonOrNothing } from '../../common/json';
import {
  columnsOf,
  decodeSegments,
  encodeSegment,
  numbersOf,
  segmentRows,
  tailBytes,
  type MetricNumbers,
  type MetricSegment,
} from '../../run-data/metric-segments';
import { runFiles } from '../../run-data/run-files';
import { lineSlices, openOrNothing, readRange } from './json-lines';

/** Maximum bytes of column files: those of a million steps with 200 keys. */
const mostColumnBytes = 2 ** 31;
/** Number of bytes after which the reader yields to the event loop. */
const sliceBytes = 1 << 18;
/** Number of unread bytes above which the newest part is shown first. */
const longBytes = 8 << 20;
const newestBytes = 1 << 20;

/** Rows in order, by columns. Steps are increasing; a line with an earlier step is skipped. */
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

  /** Appends a segment. Returns false if its steps do not continue the table. */
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

  /** Number of lines that are not yet in a segment. `close` turns them into a segment and returns its columns. */
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

  /** Returns all rows of a key, NaN where missing. A view, valid until the table grows. */
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

export class MetricColumns {
  private table = new ColumnTable();
  private offset = 0;
  private skipping = false;
  private tail = Buffer.alloc(0);
  private cached = false;
  private current: Promise<unknown> = Promise.resolve();
  /** Offset in metrics.jsonl of the first open line of the table. */
  private openFrom = 0;
  private readonly file: string;
  /** Incremented when the metrics were truncated or replaced, which invalidates row numbers. */
  epoch = 0;

  /** `cache` is the folder for columns of runs whose trainer wrote none; null keeps them in memory only. */
  constructor(
    private readonly folder: string,
    private readonly cache: string | null,
  ) {
    this.file = join(folder, runFiles.metrics);
  }

  /** The rows read so far. */
  get rows(): ColumnTable {
    return this.table;
  }

  /**
   * Whether an `update` would take so long that the newest part should be shown first. Loads the existing columns,
   * which is fast.
   */
  async isLong(): Promise<boolean> {
    return this.inTurn(async handle => handle !== undefined && (await handle.stat()).size - this.offset > longBytes);
  }

  /** Reads only the newest rows. */
  async newest(): Promise<ColumnTable> {
    const table = new ColumnTable();
    const handle = await openOrNothing(this.file, this.folder);
    if (!handle) return table;
    try {
      const { size } = await handle.stat();
      const from = Math.max(0, size - newestBytes);
      const bytes = await readRange(handle, from, size - from);
      const start = from === 0 ? 0 : bytes.indexOf(0x0a) + 1;
      for (const line of parsed(bytes.subarray(start, bytes.lastIndexOf(0x0a) + 1))) table.addLine(line);
      return table;
    } finally {
      await handle.close();
    }
  }

  /**
   * Reads what was appended to the file. `progress` receives the share 0…1 of a long read. Throws on file errors other
   * than a missing file.
   */
  async update(progress: (read: number) => void = () => undefined): Promise<ColumnTable> {
    return this.inTurn(async handle => {
      if (!handle) return this.table;
      const { size } = await handle.stat();
      const began = this.offset;
      for await (const { bytes, last, offset, skipping } of lineSlices(
        handle,
        { offset: this.offset, skipping: this.skipping },
        size,
      )) {
        await this.take(bytes, offset - bytes.length);
        this.offset = offset;
        this.skipping = skipping;
        this.tail = Buffer.concat([this.tail, last]).subarray(-tailBytes);
        if (size - began > sliceBytes) {
          progress((offset - began) / (size - began));
          await breathe();
        }
      }
      return this.table;
    });
  }

  /** Runs one read at a time on the current metrics.jsonl. If nothing was read yet, loads the column files first. */
  private inTurn<T>(work: (handle: FileHandle | undefined) => Promise<T>): Promise<T> {
    const next = this.current.then(async () => {
      const handle = await openOrNothing(this.file, this.folder);
      try {
        if (!handle) this.forget();
        else if (!(await this.fits(handle))) this.forget();
        if (handle && this.offset === 0) await this.takeSegments(handle);
        return await work(handle);
      } finally {
        await handle?.close();
      }
    });
    this.current = next.catch(() => undefined);
    return next;
  }

  /** Adds complete lines, the first of which starts at byte `at`. */
  private async take(bytes: Buffer, at: number): Promise<void> {
    let from = 0;
    for (let end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
      const line = numbersOf(jsonOrNothing(bytes.toString('utf8', from, end)));
      if (line) this.table.addLine(line);
      if (this.table.openLines >= segmentRows) await this.closeSegment(at + end + 1, bytes.subarray(0, end + 1));
    }
  }

  /**
   * Turns the open lines into a segment, and caches it on disk if the trainer wrote none. `before` are the bytes that
   * end at `to`.
   */
  private async closeSegment(to: number, before: Buffer): Promise<void> {
    const columns = this.table.close();
    const from = this.openFrom;
    this.openFrom = to;
    if (!this.cache || !this.cached) return;
    const tail = Buffer.concat([this.tail, before.subarray(-tailBytes)])
      .subarray(-tailBytes)
      .toString('base64');
    const bytes = encodeSegment({ from, to, tail, rows: columns.get('step')!.length, columns });
    try {
      await appendFile(this.cacheFile, bytes);
    } catch {
      this.cached = false; // disk full or not writable: the lines are read again next time
    }
  }

  /** Loads the column file that matches the lines: the trainer's, else our own. */
  private async takeSegments(handle: FileHandle): Promise<void> {
    this.cached = false;
    if ((await this.takeFile(join(this.folder, runFiles.columns), handle)) || !this.cache) return;
    try {
      await mkdir(this.cache, { recursive: true });
      this.cached = true;
      await this.takeFile(this.cacheFile, handle);
    } catch {
      this.cached = false; // caching is not possible: columns stay in memory
    }
  }

  private async takeFile(file: string, handle: FileHandle): Promise<boolean> {
    const buffer = await wholeFile(file);
    if (!buffer) return false;
    const { size } = await handle.stat();
    const found = decodeSegments(buffer).filter(({ segment }) => segment.to <= size);
    // Lines are only appended or truncated, so if the newest segment matches, all earlier ones do.
    while (found.length > 0 && !(await stands(handle, found[found.length - 1].segment))) found.pop();
    let taken = 0; // valid bytes of `file`
    for (const { segment, end } of found) {
      if (segment.from !== this.offset || !this.table.addSegment(segment)) break;
      this.offset = this.openFrom = segment.to;
      this.tail = Buffer.from(segment.tail, 'base64');
      taken = end;
    }
    if (this.cached && taken < buffer.byteLength) await truncate(file, taken);
    return taken > 0;
  }

  private async fits(handle: FileHandle): Promise<boolean> {
    if (this.offset === 0) return true;
    const at = await readRange(handle, this.offset - this.tail.length, this.tail.length);
    return at.equals(this.tail);
  }

  private forget(): void {
    if (this.offset === 0) return;
    this.epoch++;
    this.table = new ColumnTable();
    this.offset = this.openFrom = 0;
    this.skipping = false;
    this.tail = Buffer.alloc(0);
  }

  private get cacheFile(): string {
    return join(this.cache!, `${createHash('sha256').update(this.folder).digest('hex').slice(0, 24)}.columns`);
  }
}

function* parsed(bytes: Buffer): Generator<MetricNumbers> {
  for (const text of bytes.toString('utf8').split('\n')) {
    const line = numbersOf(jsonOrNothing(text));
    if (line) yield line;
  }
}

async function stands(handle: FileHandle, { to, tail }: MetricSegment): Promise<boolean> {
  const bytes = Buffer.from(tail, 'base64');
  return (await readRange(handle, to - bytes.length, bytes.length)).equals(bytes);
}

/** Returns a file's bytes in a separate buffer, so that columns are 8-byte aligned; null if it cannot be read. */
async function wholeFile(file: string): Promise<ArrayBuffer | null> {
  try {
    const bytes = await readBounded(file, { most: mostColumnBytes });
    const { buffer, byteLength } = bytes;
    return byteLength === buffer.byteLength ? (buffer as ArrayBuffer) : (buffer.slice(0, byteLength) as ArrayBuffer);
  } catch {
    return null;
  }
}
