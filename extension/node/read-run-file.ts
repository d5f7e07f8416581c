// Reads the files of a run folder by name, each with a size limit for its kind (bounded-file.ts). A run folder is
// untrusted: only regular files in this folder are opened. A file is refused if it is larger than any file that a
// trainer writes.
import { closeSync, lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  RefusedFile,
  isMissing,
  listBounded,
  listBoundedSync,
  openRegular,
  openRegularSync,
  readBounded,
  readBoundedSync,
} from './bounded-file';
import type { Bounds } from './bounded-file';
import { environmentFiles, runFiles } from '../run-data/run-file-names';

const mebibyte = 2 ** 20;

/** Maximum bytes of a log that is read to its end. A log of 100,000 steps has less than a tenth of this size. */
export const mostLogBytes = 16 * 2 ** 30;

/** @throws RefusedFile if a log exceeds the maximum size, because reading a huge sparse file would take minutes */
export function requireLogSize(path: string, size: number): void {
  if (size > mostLogBytes)
    throw new RefusedFile(
      `${path} has ${size} bytes, more than the limit of ${mostLogBytes} bytes for a log: remove the file`,
    );
}

/** Maximum number of entries of a folder; enough for a million steps with one file per step. */
export const mostEntries = 1_000_000;
/**
 * `mostNames`: maximum number of entries that are read from a folder of runs. `mostRuns`: maximum number of runs that
 * are returned. If the folder has more runs, the newest are returned: the runs whose names sort last.
 */
const mostNames = 100_000;
const mostRuns = 5000;

/**
 * Maximum bytes, by file name, of a file that is read completely. Files with other names have the limit `mostOther`.
 */
const most: Readonly<Record<string, number>> = {
  [runFiles.manifest]: 16 * mebibyte,
  [runFiles.status]: mebibyte,
  [runFiles.labels]: mebibyte,
  [runFiles.notes]: mebibyte,
  [runFiles.lease]: 65_536,
  [runFiles.job]: 65_536,
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
 * Returns the bytes of a file in a run folder.
 * @throws RefusedFile, or the system's error
 */
export const readRunFile = (folder: string, name: string): Promise<Buffer> =>
  readBounded(join(folder, name), boundsOf(folder, name));

/** Synchronous `readRunFile`. */
export const readRunFileSync = (folder: string, name: string): Buffer =>
  readBoundedSync(join(folder, name), boundsOf(folder, name));

/** Opens a file of a run folder for reading in parts. @throws like `readRunFile` */
export const openRunFile = (folder: string, name: string): Promise<FileHandle> =>
  openRegular(join(folder, name), folder);

/** Whether a run folder has a readable regular file of this name; links within the folder are followed. */
export function hasRunFile(folder: string, name: string): boolean {
  try {
    closeSync(openRegularSync(join(folder, name), folder));
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the names in a subfolder of a run folder; empty if the subfolder is missing or is a link that leads out of
 * the run folder.
 */
export async function namesInRun(folder: string, name: string): Promise<string[]> {
  const entries = await listBounded(join(folder, name), { most: mostEntries, within: folder }).catch(() => []);
  return entries.map(entry => entry.name);
}

/** Synchronous `namesInRun`. */
export function namesInRunSync(folder: string, name: string): string[] {
  try {
    return listBoundedSync(join(folder, name), { most: mostEntries, within: folder }).map(entry => entry.name);
  } catch {
    return [];
  }
}

/**
 * Returns the names of the run folders in `runs`: at most `mostRuns` names, sorted by name, newest first. Empty if
 * `runs` is missing.
 */
export async function runNames(runs: string): Promise<string[]> {
  return newest(await listBounded(runs, { most: mostNames, within: null }).catch(() => []));
}

/** Synchronous `runNames`. */
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

/** Whether a folder has an entry of this name, of any type. */
export const hasEntry = (folder: string, name: string): Promise<boolean> =>
  lstat(join(folder, name)).then(
    () => true,
    error => !isMissing(error),
  );

/** Synchronous `hasEntry`. */
export function hasEntrySync(folder: string, name: string): boolean {
  try {
    lstatSync(join(folder, name));
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}
