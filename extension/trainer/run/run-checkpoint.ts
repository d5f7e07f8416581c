// Finds the checkpoint that a command reads, named or newest, and verifies it and its owner before use.
import { checkpointNamed, openCheckpoint, verifyCheckpoint } from '../store/checkpoint';
import { newestCheckpoint, refuseForeign } from '../store/newest-checkpoint';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunFolder } from '../store/run-folder';

/**
 * Null if no name is given and the run has no checkpoint. `command` is what the user typed, for the remedy.
 * @throws UserError if the manifest or the checkpoint is damaged or belongs to another run
 */
export async function checkpointFor(
  run: RunFolder,
  name: string | undefined,
  command: string,
): Promise<StoredCheckpoint | null> {
  const owner = run.verifySeal();
  if (name === undefined) return newestCheckpoint(run.path, owner, newest => `${command} --checkpoint ${newest}`);
  const checkpoint = await openCheckpoint(run.file(checkpointNamed(name)));
  refuseForeign(checkpoint, owner);
  await verifyCheckpoint(checkpoint);
  return checkpoint;
}
