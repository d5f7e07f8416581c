// Append-only files of JSON lines. A line is committed when its newline is on disk. If a process ends while it writes a
// line, the last line is incomplete; the next writer removes this line, and readers skip it. Invariant: the file up to
// `offset` consists of complete lines.
import { dirname } from 'node:path';
import { readFlags, regularTargetSync } from '../../node/bounded-file';
import { mostLineBytes } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';
import { AppendLog } from './append-log';
import type { AppendLogOptions } from './append-log';
import { storeError, syncFileSystem } from '../../node/files';
import type { SyncFileSystem } from '../../node/files';

const newline = 0x0a;
const blockBytes = 1 << 16;

/**
 * Writer of one file of lines. Only one writer of a file may exist at a time; the run's lease ensures this. Errors are
 * UserErrors.
 */
export class LineLog extends AppendLog {
  /** Opens or creates the file and removes an incomplete last line. */
  constructor(file: string, options: AppendLogOptions) {
    super(file, options, endOfLastLine);
  }

  /**
   * Appends a value as one line, with secrets removed, and returns the offset after the line. If the append fails, no
   * part of the line remains in the file.
   */
  append(value: unknown): number {
    return this.appendBytes(Buffer.from(`${secrets.json(value)}\n`));
  }

  /**
   * Appends values as lines in one write. If the append fails, no part of the lines remains in the file. Secrets are
   * not removed.
   */
  appendAll(values: readonly unknown[]): number {
    return this.appendBytes(Buffer.from(values.map(value => `${JSON.stringify(value)}\n`).join('')));
  }

  /** Removes all lines after `offset`, which must be the end of a line (0 removes all lines). */
  truncateTo(offset: number): void {
    const isEnd = Number.isInteger(offset) && offset >= 0 && offset <= this.offset;
    if (!isEnd || (offset > 0 && this.byteAt(offset - 1) !== newline))
      throw new UserError(
        `store: ${this.file} has no line that ends at byte ${offset} (its complete lines end at byte ${this.offset}): resume from another checkpoint`,
      );
    this.cutTo(offset);
  }
}

function endOfLastLine(fd: number, size: number, fs: SyncFileSystem): number {
  const block = Buffer.allocUnsafe(Math.min(size, blockBytes));
  for (let to = size; to > 0;) {
    const from = Math.max(0, to - blockBytes);
    const read = fs.readSync(fd, block, 0, to - from, from);
    const at = block.subarray(0, read).lastIndexOf(newline);
    if (at >= 0) return from + at + 1;
    to = from;
  }
  return 0;
}

export interface Line {
  text: string;
  /** Offset after the line's newline, from which reading can continue. */
  next: number;
}

/**
 * Yields the complete lines of a file from byte `from` on; an incomplete last line is omitted. A missing file has no
 * lines. Throws a UserError if the path is not a regular file, if it is a link to a file outside of `within`, or if a
 * line is longer than `mostLineBytes`. `within` defaults to the file's folder.
 */
export function readLines(
  file: string,
  from = 0,
  fs: SyncFileSystem = syncFileSystem,
  within = dirname(file),
): Generator<Line> {
  return linesOf(file, { from, fs, within, damaged: false });
}

/** Like `readLines`, for a damaged file: omits lines that are too long, and includes an incomplete last line. */
export const readDamagedLines = (file: string, from = 0): Generator<Line> =>
  linesOf(file, { from, fs: syncFileSystem, within: dirname(file), damaged: true });

interface Reading {
  from: number;
  fs: SyncFileSystem;
  within: string;
  damaged: boolean;
}

function* linesOf(file: string, { from, fs, within, damaged }: Reading): Generator<Line> {
  let fd: number;
  try {
    fd = fs.openSync(regularTargetSync(file, within), readFlags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw storeError('read', file, error);
  }
  try {
    const block = Buffer.allocUnsafe(blockBytes);
    let pending: Buffer[] = [];
    let held = 0;
    let position = from;
    for (;;) {
      const read = fs.readSync(fd, block, 0, block.length, position);
      if (read === 0) break;
      let start = 0;
      for (let at = block.indexOf(newline); at >= 0 && at < read; at = block.indexOf(newline, start)) {
        pending.push(Buffer.from(block.subarray(start, at)));
        if (held <= mostLineBytes) yield { text: Buffer.concat(pending).toString('utf8'), next: position + at + 1 };
        pending = [];
        held = 0;
        start = at + 1;
      }
      pending.push(Buffer.from(block.subarray(start, read)));
      held += read - start;
      position += read;
      if (held <= mostLineBytes) continue;
      if (!damaged)
        throw new UserError(
          `store: the line at byte ${position - held} of ${file} has more than ${mostLineBytes} bytes: remove the file`,
        );
      pending = [];
    }
    if (damaged && held > 0 && held <= mostLineBytes)
      yield { text: Buffer.concat(pending).toString('utf8'), next: position };
  } catch (error) {
    throw storeError('read', file, error);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Yields parsed lines from byte `from` on. Throws a UserError with the byte offset if a complete line cannot be parsed.
 */
export function* readValues<T>(
  file: string,
  parse: (value: unknown) => T,
  from = 0,
  fs: SyncFileSystem = syncFileSystem,
): Generator<{ value: T; next: number }> {
  let start = from;
  for (const { text, next } of readLines(file, from, fs)) {
    let value: T;
    try {
      value = parse(JSON.parse(text));
    } catch (error) {
      const [reason] = (error as Error).message.split('\n', 1);
      throw new UserError(
        `store: the line at byte ${start} of ${file} is damaged (${reason}): restore the file or remove the line`,
      );
    }
    yield { value, next };
    start = next;
  }
}
