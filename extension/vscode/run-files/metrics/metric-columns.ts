// Metrics of a run, stored as columns and kept up to date with the run's growing metrics.jsonl. Most rows are read from
// `metrics.columns`, which the trainer writes (run-data/metric-segments.ts); the newest rows are parsed from the lines.
// If the trainer wrote no columns, all lines are parsed in slices, between which the reader yields to the event loop.
// The result is cached in the extension's storage. metrics.jsonl is authoritative: columns that do not match it are
// ignored.
import { createHash } from 'node:crypto';
import { appendFile, mkdir, truncate, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { readBounded } from '../../../node/bounded-file';
import { jsonOrNothing } from '../../../common/json';
import {
  decodeSegments,
  encodeSegment,
  numbersOf,
  segmentRows,
  tailBytes,
  type MetricNumbers,
  type MetricSegment,
} from '../../../run-data/metric-segments';
import { runFiles } from '../../../run-data/run-file-names';
import { ColumnTable } from './column-table';
import { lineSlices, openOrNothing, readRange } from '../../../node/json-lines';

/** Maximum bytes of a column file, enough for a million steps with 200 keys. */
const mostColumnBytes = 2 ** 31;
/** Number of bytes after which the reader yields to the event loop. */
const sliceBytes = 1 << 18;
/** Number of unread bytes above which the newest part is shown first. */
const longBytes = 8 << 20;
const newestBytes = 1 << 20;

export class MetricColumns {
  private table = new ColumnTable();
  private offset = 0;
  private skipping = false;
  private tail = Buffer.alloc(0);
  private cached = false;
  private current: Promise<unknown> = Promise.resolve();
  /** Byte offset in metrics.jsonl of the first line that is not yet in a segment. */
  private openFrom = 0;
  private readonly file: string;
  /** Incremented when the metrics were truncated or replaced; row numbers of earlier epochs are then invalid. */
  epoch = 0;

  /**
   * `cache` is the folder for columns that the editor computes if the trainer wrote no columns. If `cache` is null, the
   * columns are stored in memory only.
   */
  constructor(
    private readonly folder: string,
    private readonly cache: string | null,
  ) {
    this.file = join(folder, runFiles.metrics);
  }

  /** Table of all rows that were read. */
  get rows(): ColumnTable {
    return this.table;
  }

  /**
   * Loads the existing columns. Returns whether more than `longBytes` of lines remain to be parsed, so that the newest
   * part should be shown first.
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
   * Reads the lines that were appended to the file. `progress` receives the completed share 0…1 of a long read. Throws
   * on file errors other than a missing file.
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
        await this.addLines(bytes, offset - bytes.length);
        this.offset = offset;
        this.skipping = skipping;
        this.tail = Buffer.concat([this.tail, last]).subarray(-tailBytes);
        if (size - began > sliceBytes) {
          progress((offset - began) / (size - began));
          await yieldToEventLoop();
        }
      }
      return this.table;
    });
  }

  /**
   * Opens metrics.jsonl and runs `work` with it. Calls run one after another. If nothing was read yet, loads the column
   * files first.
   */
  private inTurn<T>(work: (handle: FileHandle | undefined) => Promise<T>): Promise<T> {
    const next = this.current.then(async () => {
      const handle = await openOrNothing(this.file, this.folder);
      try {
        if (!handle) this.forget();
        else if (!(await this.isAppended(handle))) this.forget();
        if (handle && this.offset === 0) await this.loadSegments(handle);
        return await work(handle);
      } finally {
        await handle?.close();
      }
    });
    this.current = next.catch(() => undefined);
    return next;
  }

  /** Adds complete lines, the first of which starts at byte `at`. */
  private async addLines(bytes: Buffer, at: number): Promise<void> {
    let from = 0;
    for (let end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
      const line = numbersOf(jsonOrNothing(bytes.toString('utf8', from, end)));
      if (line) this.table.addLine(line);
      if (this.table.openLines >= segmentRows) await this.closeSegment(at + end + 1, bytes.subarray(0, end + 1));
    }
  }

  /**
   * Converts all lines that are not yet in a segment to a new segment. If the trainer wrote no columns, writes the
   * segment to the cache. `to` is the segment's end in metrics.jsonl. `before` contains the bytes immediately before
   * `to`.
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
      this.cached = false; // the disk is full or not writable: the segment is not cached
    }
  }

  /** Loads the trainer's column file or, if it does not match the lines, the cached column file. */
  private async loadSegments(handle: FileHandle): Promise<void> {
    this.cached = false;
    if ((await this.loadFile(join(this.folder, runFiles.columns), handle)) || !this.cache) return;
    try {
      await mkdir(this.cache, { recursive: true });
      this.cached = true;
      await this.loadFile(this.cacheFile, handle);
    } catch {
      this.cached = false; // caching failed: the columns are stored in memory only
    }
  }

  private async loadFile(file: string, handle: FileHandle): Promise<boolean> {
    const buffer = await readAligned(file);
    if (!buffer) return false;
    const { size } = await handle.stat();
    const found = decodeSegments(buffer).filter(({ segment }) => segment.to <= size);
    // Lines are only appended or truncated, so if a segment matches, all earlier segments match.
    while (found.length > 0 && !(await matchesTail(handle, found[found.length - 1].segment))) found.pop();
    let used = 0; // valid bytes of `file`
    for (const { segment, end } of found) {
      if (segment.from !== this.offset || !this.table.addSegment(segment)) break;
      this.offset = this.openFrom = segment.to;
      this.tail = Buffer.from(segment.tail, 'base64');
      used = end;
    }
    if (this.cached && used < buffer.byteLength) await truncate(file, used);
    return used > 0;
  }

  private async isAppended(handle: FileHandle): Promise<boolean> {
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

async function matchesTail(handle: FileHandle, { to, tail }: MetricSegment): Promise<boolean> {
  const bytes = Buffer.from(tail, 'base64');
  return (await readRange(handle, to - bytes.length, bytes.length)).equals(bytes);
}

/** Returns a file's bytes in a separate buffer, so that columns are 8-byte aligned; null if the file cannot be read. */
async function readAligned(file: string): Promise<ArrayBuffer | null> {
  try {
    const bytes = await readBounded(file, { most: mostColumnBytes });
    const { buffer, byteLength } = bytes;
    return byteLength === buffer.byteLength ? (buffer as ArrayBuffer) : (buffer.slice(0, byteLength) as ArrayBuffer);
  } catch {
    return null;
  }
}
