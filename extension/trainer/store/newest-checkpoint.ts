// Finds the newest intact checkpoint of a run, without changing anything. A checkpoint of another run counts as broken,
// and continuing from an older one than the newest is left to the user.
import { basename, join } from 'node:path';
import { runFiles } from '../../run-data/run-files';
import { UserError } from '../../common/user-error';
import { fileSystem, storeError } from '../../node/files';
import type { FileSystem } from '../../node/files';
import type { RunSeal } from './manifest-seal';
import type { StoredCheckpoint } from './checkpoint';
import { listFolder, stepFolder, replacedFolder, readManifest, verifyFile } from './checkpoint';

/** A folder that is not a valid checkpoint, and why. */
export interface BrokenCheckpoint {
  folder: string;
  reason: string;
}

/**
 * Returns the newest checkpoint whose files all match their checksums, or null, and the broken ones found before it,
 * newest first. With `owner`, a checkpoint of another run counts as broken. Reads only.
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
    // For the same step, the checkpoint in place precedes the one renamed aside.
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
 * Returns the newest checkpoint of a run, verified, or null if it has none. A newer damaged one is an error: continuing
 * from an older one is the user's decision. `command` completes the remedy, given the name of the newest intact one.
 * @throws UserError
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
  throw new UserError(`${reason} (the newest intact checkpoint is ${name}: ${command(name)})`);
}

/** Throws a UserError if a checkpoint names another run; a checkpoint of an earlier version names none. */
export function refuseForeign({ folder, manifest: { run } }: StoredCheckpoint, owner: RunSeal): void {
  if (run === undefined || (run.id === owner.id && run.manifest === owner.manifest)) return;
  throw new UserError(
    run.id === owner.id
      ? `store: ${folder} was written under another manifest of run ${owner.id}: restore manifest.json as it was, or begin a new run with trainer.resume_mode=resume_path`
      : `store: ${folder} is a checkpoint of run ${run.id} and not of ${owner.id}: begin a new run with it by trainer.resume_mode=resume_path`,
  );
}
