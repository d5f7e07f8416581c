// Refuses a resume from an earlier checkpoint, which would remove the later part of the run, until the user says what
// to do with this part: keep it and fork the run, or discard it.
import { discardedWork, formatDiscarded } from '../../run-data/discarded-work';
import { runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { readableEvents } from '../../trainer/run/stored-config';
import { checkpointNamed } from '../../trainer/store/checkpoint';
import type { RunFolder } from '../../trainer/store/run-folder';

/**
 * Throws a UserError that names what a resume from `checkpoint` would discard. Does nothing if the run has no later
 * checkpoint, or lacks this checkpoint.
 */
export function refuseDiscard(folder: RunFolder, checkpoint: string): void {
  const step = Number(/\d+$/.exec(checkpointNamed(checkpoint))![0]);
  const checkpoints = folder.checkpointSteps();
  if (!checkpoints.includes(step)) return; // the trainer names the missing checkpoint
  const work = discardedWork(step, {
    finished: finishedSteps(folder),
    checkpoints,
    events: [...readableEvents(folder.file(runFiles.events))],
  });
  if (!work) return;
  const command = `ragen resume ${folder.id} --from ${step}`;
  throw new UserError(
    `resuming run ${folder.id} from step ${step} would discard ${formatDiscarded(work)}: keep them and start a new run with ${command} --fork, or remove them with ${command} --discard`,
  );
}

/** Returns the number of finished steps; 0 if the status cannot be read, because the later checkpoints give a bound. */
function finishedSteps(folder: RunFolder): number {
  try {
    return folder.readStatus()?.step ?? 0;
  } catch {
    return 0;
  }
}
