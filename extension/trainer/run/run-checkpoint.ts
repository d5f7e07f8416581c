// Finds the checkpoint that a command uses: the one that the user named or, if none was named, the newest. Verifies
// that the files of the checkpoint are intact and that the checkpoint belongs to the run.
import { checkpointNamed, openCheckpoint, verifyCheckpoint } from '../store/checkpoint';
import { newestCheckpoint, refuseForeign } from '../store/newest-checkpoint';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunFolder } from '../store/run-folder';

/**
 * Returns the verified checkpoint; null if `name` is undefined and the run has no checkpoint.
 * @param command the user's command, for the remedy in error messages
 * @throws UserError if the manifest or the checkpoint is damaged, or the checkpoint belongs to another run
 */
export async function checkpointFor(
  run: RunFolder,
  name: string | undefined,
  command: string,
): Promise<StoredCheckpoint | null> {
  const owner = run.verifySeal();
  if (name === undefined)
    return newestCheckpoint(run.path, owner, newest => `to use it, run: ${command} --checkpoint ${newest}`);
  const checkpoint = await openCheckpoint(run.file(checkpointNamed(name)));
  refuseForeign(checkpoint, owner);
  await verifyCheckpoint(checkpoint);
  return checkpoint;
}
