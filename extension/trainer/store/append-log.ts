// Append-only files of records of any kind. Invariant: the file up to `offset` consists of complete records; the
// remains of a failed append are cut before the next one.
import { createHash } from 'node:crypto';
import { UserError } from '../../common/user-error';
import { storeError, syncFileSystem } from '../../node/files';
import type { SyncFileSystem } from '../../node/files';

export interface AppendLogOptions {
  /** `each`: every append is durable before it returns; `explicit`: `sync()` makes appends durable. */
  fsync: 'each' | 'explicit';
  fs?: SyncFileSystem;
}

/** Bytes of a log from `from` up to `to`, with their sha256 (hex). `file` is its name in the run folder. */
export interface LogPiece {
  file: string;
  from: number;
  to: number;
  sha256: string;
}

/** Writer of one file; only one writer may exist at a time. Errors are UserErrors. */
export class AppendLog {
  private readonly fs: SyncFileSystem;
  private readonly fd: number;
  private end: number;
  /** Bytes known to be on disk; `doubtful`: a sync failed, so the bytes after them must be written again. */
  private durable: number;
  private doubtful = false;
  /** Start of the piece that `takePiece` returns next, and the digest of the bytes appended since. */
  private pieceFrom: number;
  private pieceHash = createHash('sha256');
  /** An append failed and its bytes could not be removed yet. */
  private torn = false;

  /** Opens or creates the file and cuts it to the end of its last complete record, as found by `completeEnd`. */
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

  /** Committed bytes: the offset after the last complete record. */
  get offset(): number {
    return this.end;
  }

  /** Returns what was appended since the last call, as a piece of the log `file`; null if nothing was. */
  takePiece(file: string): LogPiece | null {
    if (this.end === this.pieceFrom) return null;
    const piece = { file, from: this.pieceFrom, to: this.end, sha256: this.pieceHash.digest('hex') };
    this.pieceFrom = this.end;
    this.pieceHash = createHash('sha256');
    return piece;
  }

  /** Appends one record and returns the offset after it. If it fails, nothing of the record stays. */
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

  /** Drops everything after `offset`, durably. */
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

  /** The committed bytes from `from` on. */
  private bytesFrom(from: number): Buffer {
    const bytes = Buffer.allocUnsafe(this.end - from);
    try {
      for (let at = 0; at < bytes.length;) {
        const read = this.fs.readSync(this.fd, bytes, at, bytes.length - at, from + at);
        if (read === 0) throw new UserError(`store: ${this.file} was cut short by another program: resume the run`);
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
   * Writes the bytes after the last successful sync again. After a failed fsync the system treats the unwritten pages
   * as written, so the next fsync would succeed without writing them (Rebello et al., Can Applications Recover from
   * fsync Failures?, USENIX ATC 2020). Reads still return the bytes.
   */
  private writeAgain(): void {
    const bytes = this.bytesFrom(this.durable);
    for (let at = 0; at < bytes.length;)
      at += this.fs.writeSync(this.fd, bytes, at, bytes.length - at, this.durable + at);
  }

  /** Best effort: leftover bytes are cut by the next append, or when the file is opened next. */
  private cutTorn(): void {
    try {
      this.fs.ftruncateSync(this.fd, this.end);
      this.torn = false;
    } catch {
      // Still torn.
    }
  }
}

/** Opens with `r+`, or creates the file. Not `a`: appending descriptors ignore write positions. */
function openForUpdate(file: string, fs: SyncFileSystem): number {
  try {
    return fs.openSync(file, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return fs.openSync(file, 'wx+', 0o644);
  }
}
