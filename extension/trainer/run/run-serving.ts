// Executes a run until it ends: opens the session that trains or evaluates, and writes the run's state to the status
// file and the events. If it becomes unknown which weights the engine's server has, the run returns to its newest
// checkpoint. At the end, the status file contains the final state and, after an error, one sentence with the cause.
// main.ts controls the process.
import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import { valueAt } from '../../run-data/changeable-settings';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunFolder } from '../store/run-folder';
import { LiveMlflow } from '../tracking/live-mlflow';
import { mlflowAddress, MlflowClient } from '../tracking/mlflow-client';
import type { TimedMetrics } from '../tracking/mlflow-run';
import { Journal } from './journal';
import { refuseSettings } from './resume-settings';
import type { RunControl } from './run-control';
import { openSession, type RunSession } from './run-session';
import { foreignStart, rollBackTo, startingPoint } from './starting-point';
import type { Watchers } from './status-writer';
import { changedConfig, onlyEvaluates } from './stored-config';

/**
 * Maximum number of returns to the same checkpoint. A run returns to its newest checkpoint if it is unknown which
 * weights the engine's server has, for example after a lost connection.
 */
const mostReturns = 5;

/** The state from which a run starts, resumes, or continues after a return to its checkpoint. */
export interface Start {
  checkpoint: StoredCheckpoint | null;
  /** Warnings for the user about the log files of a resumed run. */
  notes: string[];
  /** Events after the checkpoint that a resumed run keeps. They must be written again. */
  events: RunEvent[];
  /** Changed settings, by key. They apply from the next step on. This record is empty once they have been applied. */
  settings: Record<string, number>;
  /** Why the run has returned to this checkpoint; null for the first start of this trainer process. */
  because: string | null;
}

/** Objects that remain in use when a run returns to its checkpoint. */
export interface Serving {
  folder: RunFolder;
  workspace: string;
  control: RunControl;
  watchers: Watchers;
  log: Logger;
  /** Receives each journal when it is opened, and undefined when it is closed. */
  onJournal(journal: Journal | undefined): void;
  /** Ends the process, because the run's folder is gone. */
  onFolderGone(): never;
}

/** Finds the checkpoint from which the run starts, and rolls the run folder back to it. */
export async function startFrom(
  folder: RunFolder,
  from: { resume: boolean; checkpoint?: string; workspace: string; 'accept-damaged-logs': boolean },
  settings: Record<string, number>,
  because: string | null = null,
): Promise<Start> {
  const own = await startingPoint(folder, from);
  refuseSettings(folder, own?.manifest.step ?? 0, settings);
  const back =
    from.resume || own ? await rollBackTo(folder, own, from['accept-damaged-logs']) : { notes: [], events: [] };
  return { checkpoint: own ?? (await foreignStart(folder, from.workspace)), ...back, settings, because };
}

/**
 * Trains or evaluates until the run ends. Whenever it becomes unknown which weights the server has, returns to the
 * newest checkpoint and continues from there.
 */
export async function serveToEnd(serving: Serving, first: Start, accept: boolean): Promise<void> {
  const { folder, workspace, log } = serving;
  let start = first;
  for (let returns = 0; ; returns++) {
    const because = await serve(serving, start, returns < mostReturns);
    if (because === null) return;
    const { settings } = start;
    const before = start.checkpoint?.manifest.step ?? 0;
    try {
      const from = { resume: true, workspace, 'accept-damaged-logs': accept };
      start = await startFrom(folder, from, settings, because);
    } catch (error) {
      const { message, stack } = error as Error;
      log.error({ stack }, message);
      return failReturn(serving, start, `${because}, and the run cannot return to its newest checkpoint: ${message}`);
    }
    if ((start.checkpoint?.manifest.step ?? 0) > before) returns = -1;
  }
}

/**
 * Ends a run that cannot return to its checkpoint. Writes the reason to the status and the events, as for any failed
 * run.
 */
async function failReturn(serving: Serving, start: Start, sentence: string): Promise<void> {
  const journal = openJournal(serving, start);
  try {
    await journal.fail(sentence);
    process.exitCode = 1;
  } finally {
    await closeJournal(serving, journal);
  }
}

/** Initial status values of a resumed run, as stored in its checkpoint. */
interface Earlier {
  wall_s?: number;
  success?: number | null;
  validated?: number | null;
}

const earlierIn = (checkpoint: StoredCheckpoint | null): Earlier => (checkpoint?.manifest.state ?? {}) as Earlier;

/** Returns the status of a run whose session is not open yet. */
export function firstStatus(folder: RunFolder, checkpoint: StoredCheckpoint | null): RunStatus {
  const earlier = earlierIn(checkpoint);
  return {
    state: 'starting',
    step: checkpoint?.manifest.step ?? 0,
    total_steps: plannedSteps(folder),
    success: earlier.success ?? null,
    ...(typeof earlier.success === 'number' && { success_of: typeof earlier.validated === 'number' ? 'val' : 'train' }),
    reward: null,
    tokens_per_s: null,
    eta_s: null,
    phase: 'idle',
    updated: new Date().toISOString(),
  };
}

function openJournal(
  { folder, control, watchers, onJournal }: Serving,
  { checkpoint, events }: Start,
  onMetrics?: (line: TimedMetrics) => void,
): Journal {
  const journal = new Journal(
    folder,
    watchers,
    firstStatus(folder, checkpoint),
    earlierIn(checkpoint).wall_s ?? 0,
    control,
    onMetrics,
  );
  journal.keepEvents(events.splice(0));
  onJournal(journal);
  return journal;
}

async function closeJournal({ onJournal }: Serving, journal: Journal): Promise<void> {
  onJournal(undefined); // until the next journal is open, requests only change the control
  await journal.close();
}

/**
 * Trains or evaluates from `start` until the run ends or must return to its newest checkpoint. Returns the reason if
 * the run must return, or null if the run has ended.
 */
async function serve(serving: Serving, start: Start, mayReturn: boolean): Promise<string | null> {
  const { folder, workspace, control, log } = serving;
  const { checkpoint, notes, because } = start;
  const journal = openJournal(serving, start, line => tracking?.push(line));
  const tracking = liveMlflow(folder, sentence => journal.event('warning', sentence));
  let session: RunSession | undefined;
  try {
    journal.update({ state: control.stopped.aborted ? 'stopping' : 'starting', error: because ?? undefined });
    const place = checkpoint ? journal.relative(checkpoint.folder) : 'its start';
    if (because !== null) journal.event('warning', `the run returns to ${place}: ${because}`);
    session = await openSession({ folder, workspace, checkpoint, control, journal, returned: because !== null });
    if (checkpoint) journal.event('resume', `resumed from ${place}`);
    for (const note of notes) journal.event('warning', note);
    log.info({ ...session.about, step: session.step() }, 'running');
    journal.update({ state: control.state, error: undefined });
    journal.event('state', control.state);
    await session.changeSettings(start.settings);
    start.settings = {};
    const end = await session.work();
    journal.update({ state: end, step: session.step(), phase: 'idle', eta_s: null });
    journal.event('state', end);
    await journal.sync();
    log.info({ step: session.step() }, end);
  } catch (error) {
    if (!existsSync(folder.path)) serving.onFolderGone(); // the error may be a consequence of a deleted run folder
    const isUncertain = error instanceof WeightsUncertain;
    if (isUncertain && !control.stopped.aborted && mayReturn) {
      log.warn(error.message);
      return `engine: ${error.message}, so the weights on the server are uncertain`;
    }
    if (isUncertain && control.stopped.aborted) journal.event('warning', halfStep(error));
    const isStopped = error instanceof RunStopped || (isUncertain && control.stopped.aborted);
    const failure = isStopped ? await stoppedEarly(journal) : (error as Error);
    if (failure) {
      const { message, stack } = failure;
      log.error({ stack }, message);
      await journal.fail(failureSentence(failure));
      process.exitCode = 1;
    }
  } finally {
    await session?.close();
    await tracking?.close(journal.status.state);
    await closeJournal(serving, journal);
  }
  return null;
}

/** Opens the sender of the run's metrics; undefined without `workbench.mlflow`. */
function liveMlflow({ manifest }: RunFolder, report: (sentence: string) => void): LiveMlflow | undefined {
  const url = valueAt(manifest.config, 'workbench.mlflow');
  if (typeof url !== 'string') return undefined;
  return new LiveMlflow(new MlflowClient(mlflowAddress(url, 'workbench.mlflow')), manifest, report);
}

const halfStep = ({ message }: WeightsUncertain): string =>
  `the run was stopped within a step (${message}), so ragen resume continues from the newest checkpoint`;

/** Returns the error message of a failed run, which states the cause of the failure and what the user can do. */
function failureSentence(failure: Error): string {
  if (failure instanceof UserError) return failure.message;
  if (failure instanceof WeightsUncertain)
    return `engine: ${failure.message}, and the run has returned to the same checkpoint ${mostReturns} times: check the connection to the server, then resume the run`;
  return `trainer: ${failure.message} (see trainer.log)`;
}

/** Returns the planned number of steps; 0 for an evaluation. */
function plannedSteps(folder: RunFolder): number {
  const config = changedConfig(folder);
  return onlyEvaluates(config) ? 0 : (valueAt(config, 'trainer.total_training_steps') as number);
}

/**
 * Writes the final status of a run that was stopped before its model was loaded, or of an evaluation that was stopped.
 * If the status could not be written, returns the error.
 */
async function stoppedEarly(journal: Journal): Promise<Error | undefined> {
  journal.update({ state: 'stopped', phase: 'idle', download: undefined, eta_s: null });
  journal.event('state', 'stopped');
  return journal.sync().then(
    () => undefined,
    (error: Error) => error,
  );
}
