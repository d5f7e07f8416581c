// Finds the checkpoint, of this run or of another run, from which a trainer continues. Rolls the run folder back to
// this checkpoint. All checkpoints and logs are verified before any file is changed.
import { basename, resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { survivesResume } from '../../run-data/event-marks';
import type { RunEvent } from '../../run-data/run-events';
import { runFiles } from '../../run-data/run-file-names';
import { onlyEvaluates, readableEvents, storedConfig } from './stored-config';
import type { RunConfig } from '../config/schema';
import { acceptEvaluation, acceptLogs } from './resumed-logs';
import { checkpointNamed, openCheckpoint, verifyCheckpoint } from '../store/checkpoint';
import { newestCheckpoint, refuseForeign } from '../store/newest-checkpoint';
import { removeLater } from '../store/checkpoint-writer';
import type { StoredCheckpoint } from '../store/checkpoint';
import { adoptLogs } from '../store/log-ledger';
import type { RunFolder } from '../store/run-folder';
import { rollBack } from '../store/rollback';

/**
 * Returns the verified checkpoint to resume from: the named one or, if none is named, the newest. Returns null for a
 * new run, and for a run that ended before its first checkpoint. Changes no file.
 * @throws UserError if the manifest or the checkpoint is damaged, or the checkpoint belongs to another run
 */
export async function startingPoint(
  folder: RunFolder,
  { resume, checkpoint }: { resume: boolean; checkpoint?: string },
): Promise<StoredCheckpoint | null> {
  const owner = folder.verifySeal();
  if (checkpoint !== undefined) {
    const named = await openCheckpoint(folder.file(checkpointNamed(checkpoint)));
    refuseForeign(named, owner);
    await verifyCheckpoint(named);
    return named;
  }
  if (!resume) return null;
  if (courseOf(folder).resume_mode === 'disable')
    throw new UserError(
      `run ${folder.id} was made with trainer.resume_mode=disable: start a new run, or name the checkpoint to resume from`,
    );
  return newestCheckpoint(
    folder.path,
    owner,
    name => `to use it, run: ragen resume ${folder.id} --from ${name} --discard`,
  );
}

/** The result of a rollback: warnings about the logs, and the events after the checkpoint that the run keeps. */
interface RolledBack {
  notes: string[];
  events: RunEvent[];
}

/**
 * Checks the logs and rolls the folder back to `checkpoint`. If `checkpoint` is null, rolls the folder back to the
 * state before the first step. The caller must write the returned events again.
 */
export async function rollBackTo(
  folder: RunFolder,
  checkpoint: StoredCheckpoint | null,
  accept: boolean,
): Promise<RolledBack> {
  const evaluates = onlyEvaluates(folder.manifest.config);
  const isOlder = checkpoint !== null && folder.checkpointSteps().some(step => step > checkpoint.manifest.step);
  const from = checkpoint ? ` --checkpoint ${basename(checkpoint.folder)}` : '';
  const command = `ragen resume ${folder.id}${from}${isOlder ? ' --discard' : ''}`;
  const { notes, offsets } = evaluates
    ? await acceptEvaluation(folder, { accept, command })
    : await acceptLogs(folder, checkpoint, { accept, command });
  const step = checkpoint?.manifest.step ?? 0;
  const events = evaluates ? [] : keptEvents(folder, step, offsets[runFiles.events] ?? 0);
  if (checkpoint) await removeLater(folder.path, step);
  await rollBack(folder, checkpoint ? step : null, offsets);
  if (accept && notes.length > 0) await adoptLogs(folder.path);
  return { notes, events };
}

/** Returns the events after byte `from` that a resume from the checkpoint of step `step` keeps. */
const keptEvents = (folder: RunFolder, step: number, from: number): RunEvent[] =>
  [...readableEvents(folder.file(runFiles.events), { from })].filter(event => survivesResume(event, step));

/**
 * If this run starts from another run's checkpoint (trainer.resume_mode=resume_path), verifies and returns that
 * checkpoint; otherwise returns null.
 */
export async function foreignStart(folder: RunFolder, workspace: string): Promise<StoredCheckpoint | null> {
  const { resume_mode, resume_from_path } = courseOf(folder);
  if (resume_mode !== 'resume_path' || resume_from_path === null) return null;
  const checkpoint = await openCheckpoint(resolve(workspace, resume_from_path));
  await verifyCheckpoint(checkpoint);
  return checkpoint;
}

const courseOf = (folder: RunFolder): RunConfig['trainer'] => storedConfig(folder).trainer;
