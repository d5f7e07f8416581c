// Append-only files of records. Invariant: the file up to `offset` consists of complete records; the bytes of a failed
// append are removed before the next append.
import { createHash } from 'node:crypto';
import { UserError } from '../../common/user-error';
import { storeError, syncFileSystem } from '../../node/files';
import type { SyncFileSystem } from '../../node/files';

export interface AppendLogOptions {
  /** `each`: every append is durable before it returns; `explicit`: `sync()` makes appends durable. */
  fsync: 'each' | 'explicit';
  fs?: SyncFileSystem;
}

/** The bytes [from, to) of a log with their sha256 (hex). `file` is the log's name in the run folder. */
export interface LogPiece {
  file: string;
  from: number;
  to: number;
  sha256: string;
}

/** Writer of one file. Only one writer of a file may exist at a time. Errors are UserErrors. */
export class AppendLog {
  private readonly fs: SyncFileSystem;
  private readonly fd: number;
  private end: number;
  /**
   * Number of leading bytes that are durable on disk. After a failed sync, `doubtful` is true, and all bytes from
   * `durable` on must be written again.
   */
  private durable: number;
  private doubtful = false;
  /** Start of the piece that `takePiece` returns next. `pieceHash` covers the bytes that were appended after this start. */
  private pieceFrom: number;
  private pieceHash = createHash('sha256');
  /** True if an append failed and its bytes could not be removed yet. */
  private torn = false;

  /**
   * Opens or creates the file. Truncates it to the offset that `completeEnd` returns, the end of the last complete
   * record.
   */
  constructor(
    readonly file: string,
    private readonly options: AppendLogOptions,
    completeEnd: (fd: number, size: number, fs: SyncFileSystem) => number = (_, size) => size,
  ) {
    this.fs = options.fs ?? syncFileSystem;
    try {
      this.fd = openForUpdate(file, this.fs);
    } catch (error) {
      throw storeError('open', file, error);
    }
    try {
      const size = this.fs.fstatSync(this.fd).size;
      this.end = completeEnd(this.fd, size, this.fs);
      if (this.end < size) this.fs.ftruncateSync(this.fd, this.end);
      this.durable = this.end;
      this.pieceFrom = this.end;
    } catch (error) {
      this.fs.closeSync(this.fd);
      throw storeError('open', file, error);
    }
  }

  /** Offset after the last complete record. */
  get offset(): number {
    return this.end;
  }

  /** Returns the bytes appended since the last call, as a piece of the log `file`; null if there are none. */
  takePiece(file: string): LogPiece | null {
    if (this.end === this.pieceFrom) return null;
    const piece = { file, from: this.pieceFrom, to: this.end, sha256: this.pieceHash.digest('hex') };
    this.pieceFrom = this.end;
    this.pieceHash = createHash('sha256');
    return piece;
  }

  /**
   * Appends one record and returns the offset after it. If the append fails, no part of the record remains in the file.
   */
  protected appendBytes(record: Uint8Array): number {
    try {
      if (this.torn) this.fs.ftruncateSync(this.fd, this.end);
      this.torn = true;
      for (let written = 0; written < record.length;)
        written += this.fs.writeSync(this.fd, record, written, record.length - written, this.end + written);
      if (this.options.fsync === 'each') this.fs.fsyncSync(this.fd);
    } catch (error) {
      this.cutTorn();
      throw storeError('append to', this.file, error);
    }
    this.torn = false;
    this.end += record.length;
    this.pieceHash.update(record);
    return this.end;
  }

  /** Makes all records durable. */
  sync(): void {
    try {
      if (this.doubtful) this.writeAgain();
      this.doubtful = true;
      this.fs.fsyncSync(this.fd);
    } catch (error) {
      throw storeError('sync', this.file, error);
    }
    this.doubtful = false;
    this.durable = this.end;
  }

  close(): void {
    this.fs.closeSync(this.fd);
  }

  /** Removes all bytes after `offset`, durably. */
  protected cutTo(offset: number): void {
    try {
      this.fs.ftruncateSync(this.fd, offset);
      this.fs.fsyncSync(this.fd);
    } catch (error) {
      throw storeError('truncate', this.file, error);
    }
    this.end = offset;
    this.pieceFrom = Math.min(this.pieceFrom, offset);
    this.pieceHash = createHash('sha256').update(this.bytesFrom(this.pieceFrom));
    this.durable = Math.min(this.durable, offset);
  }

  /** Reads the bytes from `from` to the end of the last complete record. */
  private bytesFrom(from: number): Buffer {
    const bytes = Buffer.allocUnsafe(this.end - from);
    try {
      for (let at = 0; at < bytes.length;) {
        const read = this.fs.readSync(this.fd, bytes, at, bytes.length - at, from + at);
        if (read === 0) throw new UserError(`store: ${this.file} was truncated by another program: resume the run`);
        at += read;
      }
    } catch (error) {
      throw storeError('read', this.file, error);
    }
    return bytes;
  }

  protected byteAt(offset: number): number {
    const byte = new Uint8Array(1);
    try {
      this.fs.readSync(this.fd, byte, 0, 1, offset);
    } catch (error) {
      throw storeError('read', this.file, error);
    }
    return byte[0];
  }

  /**
   * Writes all bytes after the last successful sync again. A failed fsync may mark unwritten pages as clean, and the
   * next fsync would then succeed without writing these pages. See Rebello et al., "Can Applications Recover from fsync
   * Failures?", USENIX ATC 2020. The bytes can be read again, because they are still in the page cache.
   */
  private writeAgain(): void {
    const bytes = this.bytesFrom(this.durable);
    for (let at = 0; at < bytes.length;)
      at += this.fs.writeSync(this.fd, bytes, at, bytes.length - at, this.durable + at);
  }

  /** Tries to remove the bytes of a failed append. If that fails, the next append or the next opening removes them. */
  private cutTorn(): void {
    try {
      this.fs.ftruncateSync(this.fd, this.end);
      this.torn = false;
    } catch {
      // `torn` stays true, so the next append tries again.
    }
  }
}

/** Opens the file for reading and writing, or creates it. Flag `a` is not used, because it ignores write positions. */
function openForUpdate(file: string, fs: SyncFileSystem): number {
  try {
    return fs.openSync(file, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return fs.openSync(file, 'wx+', 0o644);
  }
}
