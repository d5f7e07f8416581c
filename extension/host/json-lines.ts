// Reads a growing file of JSON lines piece by piece. Invariants: only whole lines are taken (a torn tail waits for its newline);
// a file that was cut back or rewritten, as a resume does with metrics, is noticed by the bytes before the cursor and read anew;
// a line that is no JSON, not of the schema, or longer than any trainer writes is skipped, since one bad line must not hide the others; a
// long file is read in slices that leave the event loop free between them. What is no regular file is refused (bounded-file.ts).
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import type { z } from 'zod';
import { isMissing, openRegular } from '../protocol/bounded-file';
import { jsonOrNothing } from '../protocol/json';
import { requireLogSize } from '../protocol/run-file';
import { mostLineBytes } from '../protocol/run-folder';

/** How many bytes before the cursor are compared to tell a grown file from a rewritten one. */
const memory = 256;

/** Read and parsed at once: some milliseconds' work. */
const sliceBytes = 1 << 18;

/** What one `read` brought. */
export interface FreshLines<T> {
  /** The new lines, in the file's order. */
  lines: T[];
  /** The file was cut back or replaced: `lines` are all there are, and what was read before is void. */
  restarted: boolean;
}

/** Where a reader of lines stands in its file. */
export interface LineCursor {
  /** Bytes read. */
  offset: number;
  /** `offset` lies within a line that is longer than `mostLineBytes`: the rest of it is passed over. */
  skipping: boolean;
}

/** Whole lines of a file, and where the reader stands behind them. */
export interface LineSlice extends LineCursor {
  /** Whole lines; empty where only a part of a line that is too long was passed over. */
  bytes: Buffer;
  /** The last bytes before `offset`, up to `memory` of those that this slice holds. */
  last: Buffer;
}

/**
 * The whole lines of a file between a cursor and byte `size`, some at a time. A torn tail is left out, a line that is longer than
 * `mostLineBytes` is passed over in parts.
 */
export async function* lineSlices(handle: FileHandle, from: LineCursor, size: number): AsyncGenerator<LineSlice> {
  let { offset, skipping } = from;
  for (let length = sliceBytes; offset < size;) {
    const bytes = await readRange(handle, offset, Math.min(length, size - offset));
    if (bytes.length === 0) return; // cut back meanwhile
    const first = skipping ? bytes.indexOf(0x0a) + 1 : 0;
    const end = bytes.lastIndexOf(0x0a) + 1;
    const isSkipped = skipping && first === 0;
    if (!isSkipped && end === 0 && bytes.length < length && bytes.length < mostLineBytes) return; // a torn tail
    if (!isSkipped && end === 0 && length < mostLineBytes) {
      length *= 2; // a line longer than a slice
      continue;
    }
    skipping = end === 0;
    const taken = end === 0 ? bytes.length : end;
    if (end === 0) length = sliceBytes;
    offset += taken;
    yield { offset, skipping, bytes: bytes.subarray(first, end), last: bytes.subarray(Math.max(0, taken - memory), taken) }; // prettier-ignore
  }
}

export class JsonLines<T> {
  private cursor: LineCursor = { offset: 0, skipping: false };
  private tail = Buffer.alloc(0);

  /** `within` is the folder that no link may lead out of; default: the file's own. */
  constructor(
    readonly file: string,
    private readonly schema: z.ZodType<T>,
    private readonly within: string = dirname(file),
  ) {}

  /** Reads what the file has gained since the last call. A missing file counts as empty. Throws on other file errors. */
  async read(): Promise<FreshLines<T>> {
    const handle = await openOrNothing(this.file, this.within);
    if (!handle) return this.restart(this.cursor.offset > 0);
    try {
      const { size } = await handle.stat();
      const rewritten = size < this.cursor.offset || !(await this.sameTail(handle));
      if (rewritten) this.restart(true);
      const lines: T[] = [];
      for await (const { bytes, last, ...cursor } of lineSlices(handle, this.cursor, size)) {
        this.cursor = cursor;
        this.tail = Buffer.concat([this.tail, last]).subarray(-memory);
        for (const line of this.parse(bytes.toString('utf8'))) lines.push(line);
        if (cursor.offset < size) await breathe();
      }
      return { lines, restarted: rewritten };
    } finally {
      await handle.close();
    }
  }

  private parse(text: string): T[] {
    const lines: T[] = [];
    for (const line of text.split('\n')) {
      if (line.trim() === '') continue;
      const parsed = this.schema.safeParse(jsonOrNothing(line));
      if (parsed.success) lines.push(parsed.data);
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
    return { lines: [], restarted };
  }
}

/** Up to `length` bytes from `position`; fewer where the file ends before. */
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
 * A log opened for reading; undefined where there is none.
 * @throws RefusedFile where it is no regular file within its folder or larger than any log; the system's error on others
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
