// The user's labels of a run: name, tags, notes, archived. Labels are stored in the run folder, so that every window
// and the terminal can read them. They are separate from the manifest, which never changes. A change replaces the file
// atomically, so readers never read a partial file. Writers hold a lock while they read, change and write the file, so
// concurrent changes of different labels are not lost. Must not import `vscode`. The package proper-lockfile is not
// used, because its dependency graceful-fs replaces functions of `fs` for all extensions in the process.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonOrNothing } from '../../common/json';
import { isMissing } from '../../node/bounded-file';
import { readRunFile } from '../../node/read-run-file';
import { labelsSchema } from '../../run-data/run-manifest';
import { runFiles } from '../../run-data/run-file-names';
import type { Labels } from '../../run-data/run-manifest';
import { UserError } from '../../common/user-error';

const none: Labels = { schema: 1 };

/** Returns the labels of a run; empty if the file is missing or invalid. */
export async function readLabels(folder: string): Promise<Labels> {
  const text = await readRunFile(folder, runFiles.labels).catch(() => '');
  return labelsSchema.safeParse(jsonOrNothing(text.toString('utf8'))).data ?? none;
}

/** The changed labels with their new values; the value undefined removes a label. */
export type LabelChange = Omit<Labels, 'schema'>;

/**
 * Replaces a run's labels with the result of `change`, which receives the current labels. Throws a UserError if the
 * folder cannot be written.
 */
export async function changeLabels(folder: string, change: (now: Labels) => LabelChange): Promise<void> {
  const file = join(folder, runFiles.labels);
  await holding(`${file}.lock`, async () => {
    const now = await readLabels(folder);
    await replaceText(file, `${JSON.stringify({ ...now, ...change(now) })}\n`);
  });
}

/**
 * Returns the path of a run's notes; if the file is missing, creates it with `heading` as its content. Throws a
 * UserError if the file cannot be created.
 */
export async function notesFile(folder: string, heading: string): Promise<string> {
  const file = join(folder, runFiles.notes);
  try {
    await writeFile(file, `# ${heading}\n\n`, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(file, error);
    if (!(await lstat(file)).isFile()) throw unwritable(file, new Error('it is not a regular file'));
  }
  return file;
}

/** Returns the complete notes of a run; empty without notes. Throws on file errors other than a missing file. */
export async function readNotes(folder: string): Promise<string> {
  try {
    return (await readRunFile(folder, runFiles.notes)).toString('utf8');
  } catch (error) {
    if (isMissing(error)) return '';
    throw error;
  }
}

/**
 * Replaces a run's notes. Throws a UserError if the notes are no longer `before`, the text that the user has edited, or
 * if the file cannot be written.
 */
export async function writeNotes(folder: string, before: string, text: string): Promise<void> {
  const file = join(folder, runFiles.notes);
  await holding(`${file}.lock`, async () => {
    if ((await readNotes(folder)) !== before)
      throw new UserError(`${file} was changed in the meantime: open it and add your text there`);
    await replaceText(file, text);
  });
}

/**
 * Returns the first line of a run's notes that is not a heading, truncated to 200 characters. Returns an empty text if
 * no such line exists.
 */
export function firstLine(notes: string): string {
  const line = notes.split('\n').find(text => text.trim() !== '' && !/^\s*(#|---)/.test(text)) ?? '';
  return line.trim().length > 200 ? `${line.trim().slice(0, 199)}…` : line.trim();
}

/**
 * `pollMs`: milliseconds between checks of a lock. `abandonedMs`: age in milliseconds from which a lock is treated as
 * abandoned. Writers hold a lock only while they write one small file.
 */
const [pollMs, abandonedMs] = [20, 2000];

/** Runs `job` while holding a lock, which is a folder. */
async function holding(lock: string, job: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await mkdir(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(lock.replace(/\.lock$/, ''), error);
    }
    const held = await stat(lock).catch(() => null);
    if (held && Math.abs(Date.now() - held.mtimeMs) > abandonedMs) await removeLock(lock);
    else await sleep(pollMs);
  }
  await job().finally(() => rmdir(lock).catch(() => undefined));
}

/** Removes an abandoned lock. Throws a UserError if the lock is a file or a folder that is not empty. */
async function removeLock(lock: string): Promise<void> {
  try {
    await rmdir(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unwritable(lock, error);
  }
}

async function replaceText(file: string, text: string): Promise<void> {
  // If the process ends before the file is renamed, the suffix .tmp marks the remaining file as incomplete.
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeFile(temporary, text, { flag: 'wx', flush: true });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw unwritable(file, error);
  }
}

const unwritable = (file: string, error: unknown): UserError =>
  new UserError(
    `${file} cannot be written (${(error as Error).message}): check the free disk space and the permissions of the folder`,
  );
