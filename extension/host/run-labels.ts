// What a user says of a run: its name, tags, notes, whether it is archived. All of it lies in the run's folder, where every window and the
// terminal see it; the manifest never changes. A change is a new file in the old one's place, so that no reader sees half of one; windows
// change it one after the other, each what the one before has left, so that of two changes of different things none is lost.
// No `vscode` here.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonOrNothing } from '../protocol/json';
import { readRunFile } from '../protocol/run-file';
import { labelsSchema, runFiles, type Labels } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';

const none: Labels = { schema: 1 };

/** The labels of a run; none where nothing was said, or where the file is no such file. */
export async function readLabels(folder: string): Promise<Labels> {
  const text = await readRunFile(folder, runFiles.labels).catch(() => '');
  return labelsSchema.safeParse(jsonOrNothing(text.toString('utf8'))).data ?? none;
}

/** What is to be said of a run; what is undefined is said no more. */
export type LabelChange = Omit<Labels, 'schema'>;

/** Changes a run's labels to what `change` makes of those that stand there. Throws a UserError where the folder cannot be written. */
export async function changeLabels(folder: string, change: (now: Labels) => LabelChange): Promise<void> {
  const file = join(folder, runFiles.labels);
  await holding(`${file}.lock`, async () => {
    const now = await readLabels(folder);
    await replaceText(file, `${JSON.stringify({ ...now, ...change(now) })}\n`);
  });
}

/** Path of a run's notes, which are made with `heading` where there are none. Throws a UserError where they cannot be. */
export async function notesFile(folder: string, heading: string): Promise<string> {
  const file = join(folder, runFiles.notes);
  try {
    await writeFile(file, `# ${heading}\n\n`, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(file, error);
    if (!(await lstat(file)).isFile()) throw unwritable(file, new Error('it is no regular file'));
  }
  return file;
}

/** The first words of a run's notes: their first line that is no heading, cut to 200 characters. Empty where there is none. */
export function firstWords(notes: string): string {
  const line = notes.split('\n').find(text => text.trim() !== '' && !/^\s*(#|---)/.test(text)) ?? '';
  return line.trim().length > 200 ? `${line.trim().slice(0, 199)}…` : line.trim();
}

/** Milliseconds between looks at a lock, and after which it counts as left behind: it is held for one small file. */
const [lookMs, leftMs] = [20, 2000];

/** Does `job` while no other window does one under the same lock, which is a folder. */
async function holding(lock: string, job: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await mkdir(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(lock.replace(/\.lock$/, ''), error);
    }
    const held = await stat(lock).catch(() => null);
    if (held && Math.abs(Date.now() - held.mtimeMs) > leftMs) await removeLock(lock);
    else await sleep(lookMs);
  }
  await job().finally(() => rmdir(lock).catch(() => undefined));
}

/** Removes a lock that was left behind. Throws a UserError where it cannot be: a file in its place, or a folder that is not empty. */
async function removeLock(lock: string): Promise<void> {
  try {
    await rmdir(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unwritable(lock, error);
  }
}

async function replaceText(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`; // never reaches results
  try {
    await writeFile(temporary, text, { flag: 'wx', flush: true });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw unwritable(file, error);
  }
}

const unwritable = (file: string, error: unknown): UserError =>
  new UserError(`${file} cannot be written (${(error as Error).message}): check the disk and the folder's permissions`);
