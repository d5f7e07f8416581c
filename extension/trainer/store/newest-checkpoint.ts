// Finds the newest intact checkpoint of a run without changing any file. A checkpoint of another run is treated as
// broken. If the newest checkpoint is broken, the user decides whether to continue from an older one.
import { basename, join } from 'node:path';
import { runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { fileSystem, storeError } from '../../node/files';
import type { FileSystem } from '../../node/files';
import type { RunSeal } from './manifest-seal';
import type { StoredCheckpoint } from './checkpoint';
import { listFolder, stepFolder, replacedFolder, readManifest, verifyFile } from './checkpoint';

/** A folder that is not a valid checkpoint, with the reason. */
export interface BrokenCheckpoint {
  folder: string;
  reason: string;
}

/**
 * Returns the newest checkpoint whose files all match their checksums (null if there is none), and all newer broken
 * checkpoints, newest first. With `owner`, a checkpoint of another run is treated as broken. Changes no file.
 */
export async function newestValid(
  runFolder: string,
  fs: FileSystem = fileSystem,
  owner?: RunSeal,
): Promise<{ checkpoint: StoredCheckpoint | null; broken: BrokenCheckpoint[] }> {
  const parent = join(runFolder, runFiles.checkpoints);
  const names = await listFolder(parent, fs);
  const candidates = names
    .map(name => ({ name, step: stepFolder.exec(replacedFolder.exec(name)?.[1] ?? name)?.[1] }))
    .filter((candidate): candidate is { name: string; step: string } => candidate.step !== undefined)
    // Of two folders with the same step, the one with the final name comes before `.old-…`.
    .sort((a, b) => Number(b.step) - Number(a.step) || (a.name < b.name ? 1 : -1));
  const broken: BrokenCheckpoint[] = [];
  for (const { name } of candidates) {
    const folder = join(parent, name);
    try {
      const manifest = await readManifest(folder, fs);
      if (owner) refuseForeign({ folder, manifest }, owner);
      for (const file of Object.keys(manifest.files)) await verifyFile(folder, file, manifest, fs);
      return { checkpoint: { folder, manifest }, broken };
    } catch (error) {
      broken.push({ folder, reason: storeError('read', folder, error).message });
    }
  }
  return { checkpoint: null, broken };
}

/**
 * Returns the newest checkpoint of a run, verified; null if the run has no checkpoint.
 * @param command returns a remedy for the error message: how to continue from the checkpoint with the given name
 * @throws UserError if the newest checkpoint is broken
 */
export async function newestCheckpoint(
  runFolder: string,
  owner: RunSeal,
  command: (name: string) => string,
): Promise<StoredCheckpoint | null> {
  const { checkpoint, broken } = await newestValid(runFolder, fileSystem, owner);
  if (broken.length === 0) return checkpoint;
  const [{ reason }] = broken;
  if (!checkpoint) throw new UserError(`${reason} (run ${basename(runFolder)} has no intact checkpoint)`);
  const name = basename(checkpoint.folder);
  throw new UserError(`${reason} (the newest intact checkpoint is ${name}; ${command(name)})`);
}

/**
 * Throws a UserError if a checkpoint belongs to another run. A checkpoint of an earlier version names no run and is
 * accepted.
 */
export function refuseForeign({ folder, manifest: { run } }: StoredCheckpoint, owner: RunSeal): void {
  if (run === undefined || (run.id === owner.id && run.manifest === owner.manifest)) return;
  throw new UserError(
    run.id === owner.id
      ? `store: ${folder} was written when run ${owner.id} had another manifest.json: restore that manifest.json, or start a new run with trainer.resume_mode=resume_path`
      : `store: ${folder} is a checkpoint of run ${run.id} and not of ${owner.id}: start a new run from it with trainer.resume_mode=resume_path`,
  );
}
