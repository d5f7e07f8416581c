// Append-only files of JSON lines. A line is committed once its newline is on disk; a writer that died mid-line leaves a torn tail,
// which the next writer cuts and every reader passes over. Invariant: the file up to `offset` is whole lines.
import { UserError } from '../../protocol/user-error';
import { storeError, syncFileSystem } from './files';
import type { SyncFileSystem } from './files';

const newline = 0x0a;
const blockBytes = 1 << 16;

export interface LineLogOptions {
  /** `each` makes every append durable before it returns; `explicit` leaves that to `sync()`. */
  fsync: 'each' | 'explicit';
  fs?: SyncFileSystem;
}

/** Writer of one file; there must be one writer at a time (the run's lease sees to that). Errors are UserErrors. */
export class LineLog {
  private readonly fs: SyncFileSystem;
  private readonly fd: number;
  private end: number;
  /** An append failed and its bytes could not be removed yet. */
  private torn = false;

  /** Opens or creates the file and cuts a torn last line. */
  constructor(
    readonly file: string,
    private readonly options: LineLogOptions,
  ) {
    this.fs = options.fs ?? syncFileSystem;
    try {
      this.fd = openForUpdate(file, this.fs);
    } catch (error) {
      throw storeError('open', file, error);
    }
    try {
      const size = this.fs.fstatSync(this.fd).size;
      this.end = endOfLastLine(this.fd, size, this.fs);
      if (this.end < size) this.fs.ftruncateSync(this.fd, this.end);
    } catch (error) {
      this.fs.closeSync(this.fd);
      throw storeError('open', file, error);
    }
  }

  /** Bytes committed: the offset after the last whole line. */
  get offset(): number {
    return this.end;
  }

  /** Appends one value as one line and returns the offset after it. When it fails, nothing of the line stays. */
  append(value: unknown): number {
    const line = Buffer.from(`${JSON.stringify(value)}\n`);
    try {
      if (this.torn) this.fs.ftruncateSync(this.fd, this.end);
      this.torn = true;
      for (let written = 0; written < line.length;)
        written += this.fs.writeSync(this.fd, line, written, line.length - written, this.end + written);
      if (this.options.fsync === 'each') this.fs.fsyncSync(this.fd);
    } catch (error) {
      this.cutTorn();
      throw storeError('append to', this.file, error);
    }
    this.torn = false;
    this.end += line.length;
    return this.end;
  }

  /** Best effort: what stays is cut by the next append, or by the next open when it has no newline. */
  private cutTorn(): void {
    try {
      this.fs.ftruncateSync(this.fd, this.end);
      this.torn = false;
    } catch {
      // Still torn.
    }
  }

  /** Makes all lines durable. */
  sync(): void {
    try {
      this.fs.fsyncSync(this.fd);
    } catch (error) {
      throw storeError('sync', this.file, error);
    }
  }

  /** Drops every line after `offset`, which must be the end of a line (0 for all). */
  truncateTo(offset: number): void {
    if (
      !Number.isInteger(offset) ||
      offset < 0 ||
      offset > this.end ||
      (offset > 0 && this.byteAt(offset - 1) !== newline)
    )
      throw new UserError(
        `store: ${this.file} has no line ending at byte ${offset} (it has ${this.end}): resume from another checkpoint`,
      );
    try {
      this.fs.ftruncateSync(this.fd, offset);
      this.fs.fsyncSync(this.fd);
    } catch (error) {
      throw storeError('truncate', this.file, error);
    }
    this.end = offset;
  }

  close(): void {
    this.fs.closeSync(this.fd);
  }

  private byteAt(offset: number): number {
    const byte = new Uint8Array(1);
    this.fs.readSync(this.fd, byte, 0, 1, offset);
    return byte[0];
  }
}

/** `r+`, or a new file. Not `a`: appending descriptors ignore write positions. */
function openForUpdate(file: string, fs: SyncFileSystem): number {
  try {
    return fs.openSync(file, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return fs.openSync(file, 'wx+', 0o644);
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
  /** Offset after the line's newline: where to read on. */
  next: number;
}

/** Whole lines of a file from byte `from` on, in order; a torn tail is left out. A file that does not exist has none. */
export function* readLines(file: string, from = 0, fs: SyncFileSystem = syncFileSystem): Generator<Line> {
  let fd: number;
  try {
    fd = fs.openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw storeError('read', file, error);
  }
  try {
    const block = Buffer.allocUnsafe(blockBytes);
    let pending: Buffer[] = [];
    let position = from;
    for (;;) {
      const read = fs.readSync(fd, block, 0, block.length, position);
      if (read === 0) return;
      let start = 0;
      for (let at = block.indexOf(newline); at >= 0 && at < read; at = block.indexOf(newline, start)) {
        pending.push(Buffer.from(block.subarray(start, at)));
        yield { text: Buffer.concat(pending).toString('utf8'), next: position + at + 1 };
        pending = [];
        start = at + 1;
      }
      pending.push(Buffer.from(block.subarray(start, read)));
      position += read;
    }
  } catch (error) {
    throw storeError('read', file, error);
  } finally {
    fs.closeSync(fd);
  }
}

/** Parsed lines from byte `from` on. A whole line that does not parse or does not fit is a UserError naming its number. */
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
