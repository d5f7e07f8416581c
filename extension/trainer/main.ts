// Entry point of the trainer: `node trainer.cjs --run <folder> [--workspace <folder>] [--resume] [--checkpoint
// step-000100] [--trust-code <sha256>] [--accept-damaged-logs] [--set key=value]…` trains or evaluates one run. The
// process first acquires the run's lease, so that no second trainer works on the run. Standard error is the run's
// trainer.log. At the end, the status file records the final state and, after an error, one sentence with the cause.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import pino from 'pino';
import { runFiles } from '../run-data/run-file-names';
import type { RunStatus } from '../run-data/run-status-file';
import { UserError } from '../common/user-error';
import { valueAt } from '../run-data/changeable-settings';
import { changedConfig, onlyEvaluates } from './run/stored-config';
import { Journal } from './run/journal';
import type { Watchers } from './run/status-writer';
import { RunStopped } from '../engine/run-stopped';
import { WeightsUncertain } from '../engine/weights-uncertain';
import { RunControl } from './run/run-control';
import { clearPrinted, secrets } from '../node/secrets';
import { openSession } from './run/run-session';
import type { RunSession } from './run/run-session';
import { refuseSettings, resumeSettings } from './run/resume-settings';
import type { StoredCheckpoint } from './store/checkpoint';
import { folderGone, acquireLease, newToken } from './store/held-lease';
import type { HeldLease } from './store/held-lease';
import { rotateLog } from './store/rotate-log';
import { RunFolder } from './store/run-folder';
import { requireNoLinks, requireTrusted } from './run/trusted-run';
import { FileRequests } from './live/file-requests';
import { TrainerServer, endpointFor } from './live/trainer-server';
import { startingPoint, rollBackTo, foreignStart } from './run/starting-point';

const destination = pino.destination(2);
const log = pino(
  {
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    hooks: { streamWrite: line => secrets.text(line) },
  },
  destination,
);
clearPrinted(process.stdout, process.stderr);
// Failed writes to standard error are ignored. If the disk is full, log lines are lost, but the run's final status must
// still be written.
for (const stream of [destination, process.stderr]) stream.on('error', () => undefined);

/**
 * The journal and the lease that must be closed when an unexpected error occurs. `dying` is true once the handler of
 * such errors is running.
 */
const inProgress: { journal?: Journal; lease?: HeldLease; dying?: true } = {};

/** Time limit for writing the final status, in milliseconds. */
const flushTimeoutMs = 3000;

// Handles an error outside the run's control flow, for example from a stream event or an unhandled rejection. The state
// of the trainer is unknown afterwards, so the process ends. All written steps stay on disk.
process.on('uncaughtException', (error: unknown) => {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  if (inProgress.dying) return; // later errors are consequences of the first one
  inProgress.dying = true;
  log.fatal({ stack }, message);
  const sentence = `trainer: an unexpected error occurred (${secrets.text(message).slice(0, 500)}): resume the run from its newest checkpoint, and report this error with the last lines of trainer.log`;
  void (inProgress.journal?.crash(sentence, flushTimeoutMs) ?? Promise.resolve()).finally(() => {
    inProgress.lease?.release();
    endNow();
  });
});

/**
 * Ends a trainer that lost its lease or its run folder. Only one sentence is written to the log; no other file of the
 * run folder is changed.
 */
function abandon(sentence: string): never {
  log.fatal(sentence);
  endNow();
}

/**
 * Ends this process and its child processes immediately. The exit handlers end the child processes. Then the process
 * sends SIGKILL to itself, because a normal exit would crash while the engine's worker thread runs native code.
 */
function endNow(): never {
  process.on('exit', () => process.kill(process.pid, 'SIGKILL'));
  process.exit(1);
}

const stopSignals = ['SIGTERM', 'SIGINT'] as const;
/**
 * Maximum number of returns to the same checkpoint. A run returns to its checkpoint if it no longer knows which weights
 * the engine's server has, for example after a lost connection.
 */
const mostReturns = 5;

/**
 * Milliseconds between checks of the length of trainer.log. The log grows little in this time, because the output of
 * environments is rate-limited.
 */
const logLookMs = 10_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      run: { type: 'string' },
      workspace: { type: 'string', default: process.cwd() },
      resume: { type: 'boolean', default: false },
      checkpoint: { type: 'string' },
      'trust-code': { type: 'string' },
      'accept-damaged-logs': { type: 'boolean', default: false },
      set: { type: 'string', multiple: true, default: [] },
    },
  });
  if (!values.run) throw new UserError('trainer: --run is missing: give the folder of a run');
  const folder = RunFolder.open(values.run);
  requireTrusted(folder, { trustCode: values['trust-code'] });
  requireNoLinks(folder);
  const token = newToken();
  const endpoint = endpointFor(folder.path, folder.id);
  const lease = await acquireLease({
    runFolder: folder.path,
    run: folder.id,
    pid: process.pid,
    endpoint,
    token,
    onLost: abandon,
  });
  inProgress.lease = lease;
  const logFile = folder.file(runFiles.log);
  rotateLog(logFile);
  setInterval(() => rotateLog(logFile), logLookMs).unref();
  try {
    const settings = resumeSettings(values.set, folder.id);
    const first = await startFrom(folder, values, settings);
    await withControl(folder, { endpoint, token }, (control, watchers) =>
      serveToEnd({ folder, workspace: values.workspace, control, watchers }, first, values['accept-damaged-logs']),
    );
  } finally {
    lease.release();
  }
}

/** The state from which a run starts, resumes, or continues after a return to its checkpoint. */
interface Start {
  checkpoint: StoredCheckpoint | null;
  /** Warnings for the user about the logs of the resumed run. */
  notes: string[];
  /** Setting changes that apply from the next step on, by key; emptied when they have been applied. */
  settings: Record<string, number>;
  /** Why the run has returned to this checkpoint; null at the start of the trainer. */
  because: string | null;
}

/** What stays the same when a run returns to its checkpoint. */
interface Serving {
  folder: RunFolder;
  workspace: string;
  control: RunControl;
  watchers: Watchers;
}

/** Finds the checkpoint to start from and rolls the run folder back to it. */
async function startFrom(
  folder: RunFolder,
  from: { resume: boolean; checkpoint?: string; workspace: string; 'accept-damaged-logs': boolean },
  settings: Record<string, number>,
  because: string | null = null,
): Promise<Start> {
  const own = await startingPoint(folder, from);
  refuseSettings(folder, own?.manifest.step ?? 0, settings);
  const notes = from.resume || own ? await rollBackTo(folder, own, from['accept-damaged-logs']) : [];
  return { checkpoint: own ?? (await foreignStart(folder, from.workspace)), notes, settings, because };
}

/**
 * Calls `work` with a control of the run. Until `work` has ended, watchers and process signals can use this control.
 */
async function withControl(
  folder: RunFolder,
  { endpoint, token }: { endpoint: string; token: string },
  work: (control: RunControl, watchers: Watchers) => Promise<void>,
): Promise<void> {
  const control = new RunControl((state, because) => {
    inProgress.journal?.update({ state, error: because });
    inProgress.journal?.event('state', because === undefined ? state : `${state}: ${because}`);
  });
  const stop = (): void => control.stop();
  for (const signal of stopSignals) process.on(signal, stop);
  let status = firstStatus(folder, null);
  const served = { id: folder.id, token, control, status: () => status };
  const server = await TrainerServer.listen(endpoint, served);
  const requests = new FileRequests(folder.path, served);
  try {
    await work(control, {
      status: (newest, fraction) => {
        status = newest;
        server.status(newest, fraction);
      },
      appended: (file, bytes, step) => server.appended(file, bytes, step),
      event: event => server.event(event),
    });
  } finally {
    control.end();
    await requests.close();
    await server.close();
    for (const signal of stopSignals) process.off(signal, stop);
  }
}

/**
 * Trains or evaluates until the run ends. Whenever it is unknown which weights the server has, the run returns to its
 * newest checkpoint.
 */
async function serveToEnd(serving: Serving, first: Start, accept: boolean): Promise<void> {
  const { folder, workspace } = serving;
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
    await closeJournal(journal);
  }
}

/** Initial status values of a resumed run, from its checkpoint. */
interface Earlier {
  wall_s?: number;
  success?: number | null;
  validated?: number | null;
}

const earlierIn = (checkpoint: StoredCheckpoint | null): Earlier => (checkpoint?.manifest.state ?? {}) as Earlier;

function firstStatus(folder: RunFolder, checkpoint: StoredCheckpoint | null): RunStatus {
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

function openJournal({ folder, control, watchers }: Serving, { checkpoint }: Start): Journal {
  const journal = new Journal(
    folder,
    watchers,
    firstStatus(folder, checkpoint),
    earlierIn(checkpoint).wall_s ?? 0,
    control,
  );
  inProgress.journal = journal;
  return journal;
}

async function closeJournal(journal: Journal): Promise<void> {
  delete inProgress.journal; // requests until the next journal only change the control
  await journal.close();
}

/**
 * Trains or evaluates from `start` until the run ends or must return to its newest checkpoint. Returns the reason why
 * it must return, or null if it has ended.
 */
async function serve(serving: Serving, start: Start, mayReturn: boolean): Promise<string | null> {
  const { folder, workspace, control } = serving;
  const { checkpoint, notes, because } = start;
  const journal = openJournal(serving, start);
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
    if (!existsSync(folder.path)) abandon(folderGone(folder)); // a deleted run folder causes further errors
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
    await closeJournal(journal);
  }
  return null;
}

const halfStep = ({ message }: WeightsUncertain): string =>
  `the run was stopped within a step (${message}), so ragen resume continues from the newest checkpoint`;

/** Returns the error message of a failed run: the cause of the failure and what the user can do. */
function failureSentence(failure: Error): string {
  if (failure instanceof UserError) return failure.message;
  if (failure instanceof WeightsUncertain)
    return `engine: ${failure.message}, and the run has returned to the same checkpoint ${mostReturns} times: check the connection to the server, then resume the run`;
  return `trainer: ${failure.message} (see trainer.log)`;
}

/** Planned number of steps; 0 for an evaluation. */
function plannedSteps(folder: RunFolder): number {
  const config = changedConfig(folder);
  return onlyEvaluates(config) ? 0 : (valueAt(config, 'trainer.total_training_steps') as number);
}

/**
 * Writes the final status of a run that was stopped before its model was loaded, or of a stopped evaluation. Returns
 * the error if the status could not be written.
 */
async function stoppedEarly(journal: Journal): Promise<Error | undefined> {
  journal.update({ state: 'stopped', phase: 'idle', download: undefined, eta_s: null });
  journal.event('state', 'stopped');
  return journal.sync().then(
    () => undefined,
    (error: Error) => error,
  );
}

/** The process exits this many milliseconds after the end of the run, even if handles are open. */
const lingerMs = 10_000;

main()
  .catch((error: Error) => {
    log.error({ stack: error.stack }, error.message);
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  })
  .finally(() => setTimeout(() => process.exit(), lingerMs).unref());
