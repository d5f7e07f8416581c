// Reads a small JSON file of a run folder, and reads it again only if it has changed. Must not import `vscode`.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { jsonOrNothing } from '../../common/json';
import { RefusedFile, isMissing } from '../../node/bounded-file';
import { readRunFile } from '../../node/read-run-file';

/** Reader of one file. An unchanged file is not read again, whether or not the last read succeeded. */
export class SmallFile<T> {
  private value: T | undefined;
  private stamp = '';
  /** The reason why the file cannot be used, in one sentence; undefined if the last read succeeded. */
  problem: string | undefined;

  constructor(
    private readonly folder: string,
    private readonly name: string,
    private readonly schema: z.ZodType<T>,
  ) {}

  /** Returns the last valid content of the file, or undefined. */
  async read(): Promise<T | undefined> {
    const path = join(this.folder, this.name);
    const stamp = await stampOf(path);
    if (stamp === this.stamp) return this.value;
    this.problem = undefined;
    try {
      const text = (await readRunFile(this.folder, this.name)).toString('utf8');
      const { data } = this.schema.safeParse(jsonOrNothing(text));
      if (data === undefined) this.problem = `${path} is damaged: restore it or remove the run`;
      else this.value = data;
    } catch (error) {
      if (isMissing(error)) return this.value; // the file is being replaced; the next refresh reads it again
      this.problem =
        error instanceof RefusedFile
          ? error.message
          : `${path} cannot be read (${(error as Error).message}): check the permissions of the file`;
    }
    this.stamp = stamp;
    return this.value;
  }
}

/** Returns the lstat of a file or link; undefined if it is missing. */
export async function statOrNothing(path: string) {
  try {
    return await lstat(path);
  } catch {
    return undefined;
  }
}

/** Returns a text that changes when the file changes; empty if the file is missing. */
export async function stampOf(path: string): Promise<string> {
  const found = await statOrNothing(path);
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}` : '';
}
