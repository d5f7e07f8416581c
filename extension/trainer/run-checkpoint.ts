// The checkpoint of a run that a command reads: named, or the newest. Found whole and of this run before anything is made of it.
import { checkpointNamed, newestCheckpoint, openCheckpoint, refuseForeign, verifyCheckpoint } from './store/checkpoint';
import type { StoredCheckpoint } from './store/checkpoint';
import type { RunFolder } from './store/run-folder';

/**
 * Null where no name is given and the run has none. `command` is what the user typed, for the remedy.
 * @throws UserError where the manifest or the checkpoint is damaged, or of another run
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
