// Reads a growing file of JSON lines incrementally. Invariants: an incomplete last line is read only after its newline
// is written. If the bytes before the cursor have changed, the file was truncated or rewritten, for example by a
// resume, and is read from the start. An invalid line (not JSON, not matching the schema, or too long) is skipped; the
// lines after it are read. Between slices of a long file, the reader yields to the event loop. Only regular files are
// read (bounded-file.ts).
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { z } from 'zod';
import { isMissing, openRegular } from './bounded-file';
import { jsonOrNothing } from '../common/json';
import { requireLogSize } from './read-run-file';
import { mostLineBytes } from '../run-data/run-file-names';

/** Number of bytes before the cursor that are compared to distinguish a grown file from a rewritten one. */
const memory = 256;

/** Number of bytes that are read and parsed between two yields to the event loop; this takes a few milliseconds. */
const sliceBytes = 1 << 18;

/** Result of one `read`. */
export interface FreshLines<T> {
  /** The new lines, in file order. */
  lines: T[];
  /**
   * Whether the file was truncated or replaced. If so, `lines` contains all lines of the file, and all lines from
   * earlier calls are invalid.
   */
  restarted: boolean;
}

/** Position of a line reader in its file. */
export interface LineCursor {
  /** Byte offset of the first unread byte. */
  offset: number;
  /** Whether `offset` is inside a line longer than `mostLineBytes`, which is being skipped. */
  skipping: boolean;
}

/** Complete lines of a file, and the position after them. */
export interface LineSlice extends LineCursor {
  /** Complete lines; empty if only a part of an overlong line was skipped. */
  bytes: Buffer;
  /** The last bytes of this slice, at most `memory`. They directly precede `offset` in the file. */
  last: Buffer;
}

/**
 * Yields, in slices, the complete lines of a file between a cursor and byte `size`. An incomplete last line is not
 * yielded. A line longer than `mostLineBytes` is skipped, possibly over several slices.
 */
export async function* lineSlices(handle: FileHandle, from: LineCursor, size: number): AsyncGenerator<LineSlice> {
  let { offset, skipping } = from;
  for (let length = sliceBytes; offset < size;) {
    const bytes = await readRange(handle, offset, Math.min(length, size - offset));
    if (bytes.length === 0) return; // the file was truncated meanwhile
    const first = skipping ? bytes.indexOf(0x0a) + 1 : 0;
    const end = bytes.lastIndexOf(0x0a) + 1;
    const isSkipped = skipping && first === 0;
    if (!isSkipped && end === 0 && bytes.length < length && bytes.length < mostLineBytes) return; // partial last line
    if (!isSkipped && end === 0 && length < mostLineBytes) {
      length *= 2; // the line is longer than the slice
      continue;
    }
    skipping = end === 0;
    const consumed = end === 0 ? bytes.length : end;
    if (end === 0) length = sliceBytes;
    offset += consumed;
    yield {
      offset,
      skipping,
      bytes: bytes.subarray(first, end),
      last: bytes.subarray(Math.max(0, consumed - memory), consumed),
    };
  }
}

/** Reads a growing file line by line; a subclass parses the lines. */
export abstract class GrowingLines<T> {
  private cursor: LineCursor = { offset: 0, skipping: false };
  private tail = Buffer.alloc(0);
  /** Whether the first read left out the beginning of the file. */
  cut = false;
  /** Number of lines that were skipped because they are too long. */
  overlong = 0;

  /**
   * Links that lead out of the folder `within` are not followed. By default, `within` is the file's folder. A first read
   * starts at most `mostBytes` before the end of the file.
   */
  constructor(
    private file: string,
    private readonly within: string = dirname(file),
    private readonly mostBytes = Infinity,
  ) {}

  /** Returns the value of a line that is not blank; undefined to skip the line. */
  protected abstract parseLine(line: string): T | undefined;

  /**
   * Returns the lines that were appended since the last call. A missing file is read as an empty file. Throws on other
   * file errors.
   */
  async read(): Promise<FreshLines<T>> {
    const handle = await openOrNothing(this.file, this.within);
    if (!handle) return this.restart(this.cursor.offset > 0);
    try {
      const { size } = await handle.stat();
      const rewritten = size < this.cursor.offset || !(await this.sameTail(handle));
      if (rewritten) this.restart(true);
      if (this.cursor.offset === 0 && size > this.mostBytes) {
        this.cut = true;
        this.cursor = { offset: size - this.mostBytes, skipping: true };
      }
      const lines: T[] = [];
      for await (const { bytes, last, ...cursor } of lineSlices(handle, this.cursor, size)) {
        if (cursor.skipping && !this.cursor.skipping) this.overlong++;
        this.cursor = cursor;
        this.tail = Buffer.concat([this.tail, last]).subarray(-memory);
        for (const line of this.parse(bytes.toString('utf8'))) lines.push(line);
        if (cursor.offset < size) await yieldToEventLoop();
      }
      return { lines, restarted: rewritten };
    } finally {
      await handle.close();
    }
  }

  /** Whether another file has the bytes before the cursor, because the file that was read was renamed to it. */
  async hasMovedTo(file: string): Promise<boolean> {
    const handle = await openOrNothing(file, this.within);
    if (!handle) return false;
    try {
      const { size } = await handle.stat();
      return size >= this.cursor.offset && (await this.sameTail(handle));
    } finally {
      await handle.close();
    }
  }

  /** Makes later calls of `read` continue in `file`, to which the file that was read has moved. */
  moveTo(file: string): void {
    this.file = file;
  }

  private parse(text: string): T[] {
    const lines: T[] = [];
    for (const line of text.split('\n')) {
      if (line.trim() === '') continue;
      const parsed = this.parseLine(line);
      if (parsed !== undefined) lines.push(parsed);
    }
    return lines;
  }

  private async sameTail(handle: FileHandle): Promise<boolean> {
    if (this.tail.length === 0) return true;
    const from = this.cursor.offset - this.tail.length;
    return (await readRange(handle, from, this.tail.length)).equals(this.tail);
  }

  private restart(restarted: boolean): FreshLines<T> {
    this.cursor = { offset: 0, skipping: false };
    this.tail = Buffer.alloc(0);
    [this.cut, this.overlong] = [false, 0];
    return { lines: [], restarted };
  }
}

/** Reads a growing file of JSON lines that match a schema. */
export class JsonLines<T> extends GrowingLines<T> {
  /** `within`: see `GrowingLines`. */
  constructor(
    file: string,
    private readonly schema: z.ZodType<T>,
    within?: string,
  ) {
    super(file, within);
  }

  protected override parseLine(line: string): T | undefined {
    return this.schema.safeParse(jsonOrNothing(line)).data;
  }
}

/** Returns up to `length` bytes from `position`, fewer at the end of the file. */
export async function readRange(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/**
 * Opens a log for reading; undefined if it is missing.
 * @throws RefusedFile if the file is not a regular file inside `within` or exceeds the size limit of logs; the system's
 * error if opening fails for any other reason
 */
export async function openOrNothing(file: string, within: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegular(file, within);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    requireLogSize(file, (await handle.stat()).size);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
