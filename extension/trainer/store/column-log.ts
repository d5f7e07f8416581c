// Writer of `metrics.columns` (run-data/metric-segments.ts). The writer receives each line of metrics.jsonl and appends
// a segment after every `segmentRows` lines. The file is derived data: after a write error, the run goes on, the file
// is closed, and readers take all later lines from metrics.jsonl.
import {
  columnsOf,
  decodeSegments,
  encodeSegment,
  numbersOf,
  segmentRows,
  tailBytes,
} from '../../run-data/metric-segments';
import type { MetricNumbers } from '../../run-data/metric-segments';
import { createHash } from 'node:crypto';
import type { LogPiece } from './append-log';
import { readBoundedSync } from '../../node/bounded-file';
import { syncFileSystem } from '../../node/files';
import type { SyncFileSystem } from '../../node/files';
import { readLines } from './line-log';

export class ColumnLog {
  private fd: number | undefined;
  private end = 0;
  /** Lines since the last segment. The first of them begins at byte `from` of metrics.jsonl. */
  private lines: MetricNumbers[] = [];
  private from = 0;
  private pieceFrom = 0;
  private pieceHash = createHash('sha256');

  /**
   * Opens or creates `file`, which holds the columns of the log `metrics`. Segments that do not match the first
   * `length` bytes of the log are removed. All lines without a segment are then read from the log and added.
   */
  constructor(
    file: string,
    private readonly metrics: string,
    length: number,
    private readonly fs: SyncFileSystem = syncFileSystem,
  ) {
    this.attempt(() => {
      this.fd = openForUpdate(file, fs);
      const bytes = readBoundedSync(file, { most: 2 ** 31 });
      const kept = decodeSegments(new Uint8Array(bytes).buffer) // copied to align columns to 8 bytes
        .filter(({ segment }) => segment.to <= length);
      while (
        kept.length > 0 &&
        kept[kept.length - 1].segment.tail !== this.tailBefore(kept[kept.length - 1].segment.to)
      )
        kept.pop();
      const last = kept.at(-1);
      this.end = last?.end ?? 0;
      this.from = last?.segment.to ?? 0;
      fs.ftruncateSync(this.fd, this.end);
      this.pieceFrom = this.end;
      for (const { text, next } of readLines(metrics, this.from, fs)) this.append(JSON.parse(text), next);
    });
  }

  /** Adds a line. `to` is the offset after the line in metrics.jsonl. */
  append(line: unknown, to: number): void {
    if (this.fd === undefined) return;
    const numbers = numbersOf(line);
    if (numbers) this.lines.push(numbers);
    if (this.lines.length >= segmentRows) this.attempt(() => this.write(to));
  }

  /** Same as AppendLog.takePiece. */
  takePiece(file: string): LogPiece | null {
    if (this.end === this.pieceFrom) return null;
    const piece = { file, from: this.pieceFrom, to: this.end, sha256: this.pieceHash.digest('hex') };
    this.pieceFrom = this.end;
    this.pieceHash = createHash('sha256');
    return piece;
  }

  close(): void {
    if (this.fd !== undefined) this.fs.closeSync(this.fd);
    this.fd = undefined;
  }

  private write(to: number): void {
    const { from, lines, fs } = this;
    const bytes = encodeSegment({ from, to, tail: this.tailBefore(to), rows: lines.length, columns: columnsOf(lines) });
    for (let written = 0; written < bytes.length;)
      written += fs.writeSync(this.fd!, bytes, written, bytes.length - written, this.end + written);
    this.end += bytes.length;
    this.pieceHash.update(bytes);
    this.from = to;
    this.lines = [];
  }

  private tailBefore(to: number): string {
    const bytes = Buffer.alloc(Math.min(tailBytes, to));
    const fd = this.fs.openSync(this.metrics, 'r');
    try {
      const read = this.fs.readSync(fd, bytes, 0, bytes.length, to - bytes.length);
      return bytes.toString('base64', 0, read);
    } finally {
      this.fs.closeSync(fd);
    }
  }

  private attempt(work: () => void): void {
    try {
      work();
    } catch {
      this.close();
    }
  }
}

function openForUpdate(file: string, fs: SyncFileSystem): number {
  try {
    return fs.openSync(file, 'r+');
  } catch {
    return fs.openSync(file, 'wx+', 0o644);
  }
}
