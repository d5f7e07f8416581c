// Entry point of the trainer: `node trainer.cjs --run <folder> [--workspace <folder>] [--resume] [--checkpoint
// step-000100] [--trust-code <sha256>] [--accept-damaged-logs] [--set key=value]…` trains or evaluates one run, from
// acquiring the run's lease to the end of the run. Standard error is the run's trainer.log. At the end, the status file
// records the final state and, after an error, one sentence with the cause.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import pino from 'pino';
import { runFiles } from '../run-data/run-file-names';
import type { RunStatus } from '../run-data/run-status-file';
import { UserError } from '../common/user-error';
import { valueAt } from '../run-data/changeable-settings';
import { changedConfig, onlyEvaluates } from './run/stored-config';
import { Journal } from './run/journal';
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

/** Objects that the handler of unexpected errors closes. `dying` is true once this handler is running. */
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
 * Maximum number of times that a run returns to the same checkpoint because the weights on the engine's server became
 * uncertain.
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
    let from: Pick<typeof values, 'resume' | 'checkpoint'> = values;
    for (let returns = 0, before = -1; ; returns++) {
      const own = await startingPoint(folder, from);
      const step = own?.manifest.step ?? 0;
      if (step > before) returns = 0;
      before = step;
      refuseSettings(folder, step, settings);
      const notes = from.resume || own ? await rollBackTo(folder, own, values['accept-damaged-logs']) : [];
      const checkpoint = own ?? (await foreignStart(folder, values.workspace));
      const end = await serve(folder, {
        endpoint,
        token,
        workspace: values.workspace,
        checkpoint,
        notes,
        settings,
        mayReturn: returns < mostReturns,
      });
      if (end !== 'return') break;
      from = { resume: true };
    }
  } finally {
    lease.release();
  }
}

interface Serving {
  endpoint: string;
  token: string;
  workspace: string;
  checkpoint: StoredCheckpoint | null;
  /** Warnings for the user about the logs of the resumed run. */
  notes: string[];
  /** Setting changes that apply from the next step on, by key. */
  settings: Record<string, number>;
  /** Whether the run returns to its newest checkpoint if the weights on the engine's server are uncertain. */
  mayReturn: boolean;
}

/** Initial status values of a resumed run, from its checkpoint. */
interface Earlier {
  wall_s?: number;
  success?: number | null;
  validated?: number | null;
}

async function serve(
  folder: RunFolder,
  { endpoint, token, workspace, checkpoint, notes, settings, mayReturn }: Serving,
): Promise<'ended' | 'return'> {
  const earlier = (checkpoint?.manifest.state ?? {}) as Earlier;
  const initial: RunStatus = {
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
  const watched: { server?: TrainerServer } = {};
  const journal = new Journal(
    folder,
    {
      status: (status, fraction) => watched.server?.status(status, fraction),
      appended: (file, bytes, step) => watched.server?.appended(file, bytes, step),
      event: event => watched.server?.event(event),
    },
    initial,
    earlier.wall_s ?? 0,
    { wait: (sentence, ms) => control.wait(sentence, ms), resumeAfterWait: () => control.resumeAfterWait() },
  );
  inProgress.journal = journal;
  const control = new RunControl((state, because) => {
    journal.update({ state, error: because });
    journal.event('state', because === undefined ? state : `${state}: ${because}`);
  });
  const stop = (): void => control.stop();
  for (const signal of stopSignals) process.on(signal, stop);
  watched.server = await TrainerServer.listen(endpoint, {
    id: folder.id,
    token,
    control,
    status: () => journal.status,
  });
  let session: RunSession | undefined;
  try {
    journal.update({ state: 'starting' });
    session = await openSession({ folder, workspace, checkpoint, control, journal, settings });
    if (checkpoint) journal.event('resume', `resumed from ${journal.relative(checkpoint.folder)}`);
    for (const note of notes) journal.event('warning', note);
    log.info({ ...session.about, step: session.step() }, 'running');
    journal.update({ state: control.state });
    journal.event('state', control.state);
    const end = await session.work();
    journal.update({ state: end, step: session.step(), phase: 'idle', eta_s: null });
    journal.event('state', end);
    await journal.sync();
    log.info({ step: session.step() }, end);
  } catch (error) {
    if (!existsSync(folder.path)) abandon(folderGone(folder)); // a deleted run folder causes further errors
    if (error instanceof WeightsUncertain && mayReturn && !control.stopped.aborted) {
      log.warn(error.message);
      return 'return';
    }
    const failure = error instanceof RunStopped ? await stoppedEarly(journal) : (error as Error);
    if (failure) {
      const { message, stack } = failure;
      log.error({ stack }, message);
      const sentence = failure instanceof UserError ? message : `trainer: ${message} (see trainer.log)`;
      await journal.fail(sentence);
      process.exitCode = 1;
    }
  } finally {
    control.end();
    await session?.close();
    await journal.close();
    await watched.server.close();
    for (const signal of stopSignals) process.off(signal, stop);
  }
  return 'ended';
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
