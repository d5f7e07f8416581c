// Writes checkpoints: several files that are committed together. All files are written and fsynced in a temporary
// folder. The last of them is `checkpoint.json`, which contains the checksums. The folder is then renamed to its final
// name. Older checkpoints are removed after the rename. After a crash at any time, the newest valid checkpoint is
// therefore either the previous checkpoint or the new one.
import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { checkpointFolder, runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { bytesOf, fileSystem, makeFolder, storeError, syncFolder, writeNewFile } from '../../node/files';
import type { FileSystem } from '../../node/files';
import type { CheckpointState, CheckpointManifest } from './checkpoint';
import {
  fileName,
  manifestName,
  checkpointSchema,
  manifestSum,
  listFolder,
  stepFolder,
  replacedFolder,
} from './checkpoint';

/** Contents of files by name: Float32Arrays (written little-endian) or bytes. */
export type Blobs = Readonly<Record<string, Uint8Array | Float32Array>>;

/**
 * Writes the checkpoint of `state.step` into the run folder. Then removes the oldest checkpoints, so that `keep`
 * checkpoints remain, including the new one. Also removes all checkpoints of later steps; such checkpoints exist if the
 * run was resumed from an earlier step. Returns the new folder. If writing fails, throws a UserError, and the existing
 * checkpoints stay unchanged.
 */
export async function writeCheckpoint(
  runFolder: string,
  state: CheckpointState,
  blobs: Blobs,
  keep: number,
  fs: FileSystem = fileSystem,
): Promise<string> {
  const parent = join(runFolder, runFiles.checkpoints);
  const folder = join(runFolder, checkpointFolder(state.step));
  const temporary = join(parent, `.tmp-${basename(folder)}-${randomBytes(6).toString('hex')}`);
  const replaced = join(parent, `.old-${basename(folder)}`);
  try {
    await makeFolder(parent, fs, runFolder);
    await recover(parent, fs);
    await fs.mkdir(temporary);
    const files: CheckpointManifest['files'] = {};
    for (const [name, blob] of Object.entries(blobs)) {
      if (!fileName.test(name) || name === manifestName)
        throw new UserError(
          `store: a checkpoint cannot have a file ${name}: name it with letters, digits, dots and hyphens`,
        );
      files[name] = await writeNewFile(join(temporary, name), [bytesOf(blob)], fs);
    }
    const unsealed = checkpointSchema.parse({ schema: 2, ...state, files });
    const manifest: CheckpointManifest = { ...unsealed, sha256: manifestSum(unsealed) };
    await writeNewFile(join(temporary, manifestName), [Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`)], fs);
    await syncFolder(temporary, fs);
    // A folder cannot be renamed onto an existing one, so an existing checkpoint of the same step is renamed to
    // `.old-…` first. After a crash between the two renames, `recover` or `newestValid` finds the checkpoint under this
    // name.
    if (await exists(folder, fs)) await fs.rename(folder, replaced);
    await fs.rename(temporary, folder);
    await syncFolder(parent, fs);
  } catch (error) {
    await fs.rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    await recover(parent, fs).catch(() => undefined);
    throw storeError('write the checkpoint', folder, error);
  }
  await removeOthers(parent, state.step, keep, fs);
  return folder;
}

/** Removes the checkpoints of all steps after `step`; called when a run is rolled back to `step`. */
export async function removeLater(runFolder: string, step: number, fs: FileSystem = fileSystem): Promise<void> {
  const parent = join(runFolder, runFiles.checkpoints);
  for (const name of await listFolder(parent, fs)) {
    const later = Number(stepFolder.exec(replacedFolder.exec(name)?.[1] ?? name)?.[1]) > step;
    if (!later) continue;
    try {
      await fs.rm(join(parent, name), { recursive: true, force: true });
    } catch (error) {
      throw storeError('remove', join(parent, name), error);
    }
  }
}

/**
 * Recovers from an interrupted save: removes temporary folders. A checkpoint that was renamed to `.old-…` is removed if
 * the new checkpoint of the same step is complete; otherwise the old checkpoint gets its former name back.
 */
async function recover(parent: string, fs: FileSystem): Promise<void> {
  const names = await listFolder(parent, fs);
  for (const name of names) {
    const step = replacedFolder.exec(name)?.[1];
    if (step !== undefined && !names.includes(step)) await fs.rename(join(parent, name), join(parent, step));
    else if (step !== undefined || name.startsWith('.tmp-'))
      await fs.rm(join(parent, name), { recursive: true, force: true });
  }
}

/**
 * Removes superseded checkpoints after the new one is complete. Failed removals are retried after the next checkpoint.
 */
async function removeOthers(parent: string, step: number, keep: number, fs: FileSystem): Promise<void> {
  try {
    await recover(parent, fs);
    const steps = (await listFolder(parent, fs)).flatMap(name => stepFolder.exec(name)?.[1] ?? []);
    const older = steps.filter(text => Number(text) < step).sort((a, b) => Number(b) - Number(a));
    const later = steps.filter(text => Number(text) > step);
    for (const text of [...later, ...older.slice(Math.max(keep, 1) - 1)])
      await fs.rm(join(parent, `step-${text}`), { recursive: true, force: true });
  } catch {
    // The error is ignored, because a checkpoint that cannot be removed only takes up disk space.
  }
}

async function exists(path: string, fs: FileSystem): Promise<boolean> {
  try {
    await fs.stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
