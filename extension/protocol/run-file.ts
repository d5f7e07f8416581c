// Reads the files of a run folder by their names, each with the bound of its kind (bounded-file.ts). A run folder may come from anywhere:
// nothing in it is opened that is no regular file of the folder itself, and nothing is read that no trainer would have written.
import { closeSync, lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RefusedFile, isMissing, listBounded, listBoundedSync, openRegular, openRegularSync, readBounded, readBoundedSync } from './bounded-file'; // prettier-ignore
import type { Bounds } from './bounded-file';
import { environmentFiles, runFiles } from './run-folder';

const mebibyte = 2 ** 20;

/** Bytes of a log that is read to its end: 100,000 steps write less than a tenth of it. */
export const mostLogBytes = 16 * 2 ** 30;

/** @throws RefusedFile where a log is larger than is ever read: a sparse file would take minutes */
export function requireLogSize(path: string, size: number): void {
  if (size > mostLogBytes)
    throw new RefusedFile(`${path} has ${size} bytes, more than the ${mostLogBytes} that are read of a log: remove it`);
}

/** Entries of a folder: a file for each of a million steps. */
export const mostEntries = 1_000_000;
/** Names in a folder of runs, and those of them that are looked at, the newest by name. */
const mostNames = 100_000;
export const mostRuns = 5000;

/** Bytes of the files that are read whole, by name; `mostOther` of any other. */
const most: Readonly<Record<string, number>> = {
  [runFiles.manifest]: 16 * mebibyte,
  [runFiles.status]: mebibyte,
  [runFiles.labels]: mebibyte,
  [runFiles.notes]: mebibyte,
  [runFiles.lease]: 65_536,
  [runFiles.evaluation]: 16 * mebibyte,
  [runFiles.columns]: 2 ** 31,
  [environmentFiles.about]: mebibyte,
  [environmentFiles.bundle]: 64 * mebibyte,
};
const mostOther = 64 * mebibyte;

const boundsOf = (folder: string, name: string): Bounds => ({
  most: most[basename(name)] ?? mostOther,
  within: folder,
});

/**
 * The bytes of a file of a run folder, by its name there.
 * @throws RefusedFile, or the system's error
 */
export const readRunFile = (folder: string, name: string): Promise<Buffer> =>
  readBounded(join(folder, name), boundsOf(folder, name));

/** As `readRunFile`, at once. */
export const readRunFileSync = (folder: string, name: string): Buffer =>
  readBoundedSync(join(folder, name), boundsOf(folder, name));

/** A file of a run folder, opened to be read in parts. @throws as `readRunFile` */
export const openRunFile = (folder: string, name: string): Promise<FileHandle> =>
  openRegular(join(folder, name), folder);

/** Whether a run folder has a regular file of that name that can be opened, links within the folder included. */
export function hasRunFile(folder: string, name: string): boolean {
  try {
    closeSync(openRegularSync(join(folder, name), folder));
    return true;
  } catch {
    return false;
  }
}

/** Names in a sub-folder of a run folder; none where there is no such folder, or it is a link that leads out. */
export async function namesInRun(folder: string, name: string): Promise<string[]> {
  const entries = await listBounded(join(folder, name), { most: mostEntries, within: folder }).catch(() => []);
  return entries.map(entry => entry.name);
}

/** As `namesInRun`, at once. */
export function namesInRunSync(folder: string, name: string): string[] {
  try {
    return listBoundedSync(join(folder, name), { most: mostEntries, within: folder }).map(entry => entry.name);
  } catch {
    return [];
  }
}

/** Names of the folders below a folder of runs, the newest first by name, at most `mostRuns`; none where there is no such folder. */
export async function runNames(runs: string): Promise<string[]> {
  return newest(await listBounded(runs, { most: mostNames, within: null }).catch(() => []));
}

/** As `runNames`, at once. */
export function runNamesSync(runs: string): string[] {
  try {
    return newest(listBoundedSync(runs, { most: mostNames, within: null }));
  } catch {
    return [];
  }
}

const newest = (entries: { name: string; kind: string }[]): string[] =>
  entries
    .flatMap(({ name, kind }) => (kind === 'folder' ? name : []))
    .sort()
    .reverse()
    .slice(0, mostRuns);

/** Whether a folder has an entry of that name, whatever it is. */
export const hasEntry = (folder: string, name: string): Promise<boolean> =>
  lstat(join(folder, name)).then(
    () => true,
    error => !isMissing(error),
  );

/** As `hasEntry`, at once. */
export function hasEntrySync(folder: string, name: string): boolean {
  try {
    lstatSync(join(folder, name));
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}
