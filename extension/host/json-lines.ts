// Reads a growing file of JSON lines piece by piece. Invariants: only whole lines are taken (a torn tail waits for its newline);
// a file that was cut back or rewritten, as a resume does with metrics, is noticed by the bytes before the cursor and read anew;
// a line that is no JSON, or not of the schema, is skipped, since one bad line must not hide the others; a long file is read in slices
// that leave the event loop free between them.
import { open, type FileHandle } from 'node:fs/promises';
import { setImmediate as breathe } from 'node:timers/promises';
import type { z } from 'zod';
import { jsonOrNothing } from '../protocol/json';

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

export class JsonLines<T> {
  private offset = 0;
  private tail = Buffer.alloc(0);

  constructor(
    readonly file: string,
    private readonly schema: z.ZodType<T>,
  ) {}

  /** Reads what the file has gained since the last call. A missing file counts as empty. Throws on other file errors. */
  async read(): Promise<FreshLines<T>> {
    const handle = await openOrNothing(this.file);
    if (!handle) return this.restart(this.offset > 0);
    try {
      const { size } = await handle.stat();
      const rewritten = size < this.offset || !(await this.sameTail(handle));
      if (rewritten) this.restart(true);
      const lines: T[] = [];
      for (let length = sliceBytes; this.offset < size;) {
        const bytes = await readRange(handle, this.offset, Math.min(length, size - this.offset));
        const end = bytes.lastIndexOf(0x0a) + 1;
        if (end === 0 && bytes.length < length) break; // a torn tail
        if (end === 0) {
          length *= 2; // a line longer than a slice
          continue;
        }
        const whole = bytes.subarray(0, end);
        this.offset += end;
        this.tail = Buffer.concat([this.tail, whole.subarray(-memory)]).subarray(-memory);
        for (const line of this.parse(whole.toString('utf8'))) lines.push(line);
        if (this.offset < size) await breathe();
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
    return (await readRange(handle, this.offset - this.tail.length, this.tail.length)).equals(this.tail);
  }

  private restart(restarted: boolean): FreshLines<T> {
    this.offset = 0;
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

/** A file opened for reading; undefined where there is none. Throws on other file errors. */
export async function openOrNothing(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
