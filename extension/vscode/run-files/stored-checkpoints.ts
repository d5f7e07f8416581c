// The checkpoints of a run as a list to choose from: step, newest validation, time and size. Reads only
// `checkpoint.json` of each checkpoint; the trainer verifies the files before it uses them. Must not import `vscode`.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { jsonOrNothing } from '../../common/json';
import { readRunFile } from '../../node/read-run-file';
import { runFiles } from '../../run-data/run-file-names';

export interface CheckpointEntry {
  /** Folder name, such as `step-000100`. */
  name: string;
  step: number;
  /** Success of the newest validation up to this step, 0…1; null before the first validation. */
  validation: number | null;
  /** Milliseconds since 1970; null if the checkpoint cannot be read. */
  saved: number | null;
  /** Total size of the files; null if the checkpoint cannot be read. */
  bytes: number | null;
}

const describedSchema = z.object({
  files: z.record(z.string(), z.object({ bytes: z.number() })),
  state: z.object({ validated: z.number().nullish() }).catch({}),
});

/** Describes the checkpoints with the given folder names, in the same order. */
export const describeCheckpoints = (folder: string, names: readonly string[]): Promise<CheckpointEntry[]> =>
  Promise.all(names.map(name => describe(folder, name)));

async function describe(folder: string, name: string): Promise<CheckpointEntry> {
  const file = `${runFiles.checkpoints}/${name}/checkpoint.json`;
  const entry = { name, step: Number(name.slice('step-'.length)) };
  try {
    const { files, state } = describedSchema.parse(jsonOrNothing((await readRunFile(folder, file)).toString('utf8')));
    const { mtimeMs } = await lstat(join(folder, file));
    const bytes = Object.values(files).reduce((sum, each) => sum + each.bytes, 0);
    return { ...entry, validation: state.validated ?? null, saved: mtimeMs, bytes };
  } catch {
    return { ...entry, validation: null, saved: null, bytes: null };
  }
}
