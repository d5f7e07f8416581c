// Entry point of the trainer: `node trainer.cjs --run <folder> [--workspace <folder>] [--resume] [--checkpoint
// step-000100] [--trust-code <sha256>] [--accept-damaged-logs] [--set key=value]…` runs one run from acquiring its
// lease to its end. Standard error is the run's trainer.log. However the run ends, the status on disk says how, and why
// in one sentence.
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import pino from 'pino';
import { runFiles } from '../run-data/run-files';
import type { RunStatus } from '../run-data/run-status';
import { UserError } from '../common/user-error';
import { valueAt } from '../run-data/settings';
import { changedConfig, onlyEvaluates, storedConfig } from './run/stored-config';
import type { RunConfig } from './config/schema';
import { Journal } from './run/journal';
import { RunStopped } from '../engine/run-stopped';
import { RunControl } from './run/run-control';
import { clearPrinted, secrets } from '../node/secrets';
import { openSession } from './run/run-session';
import type { RunSession } from './run/run-session';
import { refuseSettings, resumeSettings } from './run/resume-settings';
import { acceptEvaluation, acceptLogs } from './run/resumed-logs';
import { checkpointNamed, openCheckpoint, verifyCheckpoint } from './store/checkpoint';
import { newestCheckpoint, refuseForeign } from './store/newest-checkpoint';
import { removeLater } from './store/checkpoint-writer';
import type { StoredCheckpoint } from './store/checkpoint';
import { folderGone, acquireLease, newToken } from './store/lease';
import type { HeldLease } from './store/lease';
import { adoptLogs } from './store/log-ledger';
import { rotateLog } from './store/rotate-log';
import { RunFolder } from './store/run-folder';
import { requireNoLinks, requireTrusted } from './run/trusted-run';
import { TrainerServer, endpointFor } from './live/trainer-server';
import { rollBack } from './store/rollback';

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
// On a full disk log lines are lost; the run's final status must still be written.
for (const stream of [destination, process.stderr]) stream.on('error', () => undefined);

/** What the handler of unexpected errors must close before the process ends. */
const atWork: { journal?: Journal; lease?: HeldLease; dying?: true } = {};

/** Time limit for writing the final status, in milliseconds. */
const flushTimeoutMs = 3000;

// An error outside the run's own control flow, for example from a stream event or an unhandled rejection. The trainer's
// state is unknown afterwards, so the process ends; committed data stays.
process.on('uncaughtException', (error: unknown) => {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  if (atWork.dying) return; // only the first error is the cause
  atWork.dying = true;
  log.fatal({ stack }, message);
  const sentence = `trainer: it met an unexpected error (${secrets.text(message).slice(0, 500)}): resume the run from its newest checkpoint, and report this with the end of trainer.log`;
  void (atWork.journal?.crash(sentence, flushTimeoutMs) ?? Promise.resolve()).finally(() => {
    atWork.lease?.release();
    endNow();
  });
});

/** Ends a trainer that lost its lease or its run folder; it writes nothing but the sentence to the log. */
function abandon(sentence: string): never {
  log.fatal(sentence);
  endNow();
}

/**
 * Ends this process and its children at once, by SIGKILL after the exit handlers have ended the children. Terminating
 * the engine's worker thread inside native code would abort the process instead.
 */
function endNow(): never {
  process.on('exit', () => process.kill(process.pid, 'SIGKILL'));
  process.exit(1);
}

/** Milliseconds between checks of the log's length. What environments print is rate-limited per second. */
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
  atWork.lease = lease;
  const logFile = folder.file(runFiles.log);
  rotateLog(logFile);
  setInterval(() => rotateLog(logFile), logLookMs).unref();
  try {
    const own = await startingPoint(folder, values);
    const settings = resumeSettings(values.set, folder.id);
    refuseSettings(folder, own?.manifest.step ?? 0, settings);
    const notes = values.resume || own ? await goBack(folder, own, values['accept-damaged-logs']) : [];
    const checkpoint = own ?? (await foreignStart(folder, values.workspace));
    await serve(folder, { endpoint, token, workspace: values.workspace, checkpoint, notes, settings });
  } finally {
    lease.release();
  }
}

interface Serving {
  endpoint: string;
  token: string;
  workspace: string;
  checkpoint: StoredCheckpoint | null;
  /** Warnings for the user about the folder that the run continues from. */
  notes: string[];
  /** Setting changes that apply from here on, by key. */
  settings: Record<string, number>;
}

/** The part of a checkpoint's state that the run's status needs. */
interface Earlier {
  wall_s?: number;
  success?: number | null;
  validated?: number | null;
}

async function serve(
  folder: RunFolder,
  { endpoint, token, workspace, checkpoint, notes, settings }: Serving,
): Promise<void> {
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
  atWork.journal = journal;
  const control = new RunControl((state, because) => {
    journal.update({ state, error: because });
    journal.event('state', because === undefined ? state : `${state}: ${because}`);
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => control.stop());
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
    if (!existsSync(folder.path)) abandon(folderGone(folder)); // the deleted folder is the cause of any error here
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
  }
}

/** Planned number of steps; 0 for an evaluation. */
function plannedSteps(folder: RunFolder): number {
  const config = changedConfig(folder);
  return onlyEvaluates(config) ? 0 : (valueAt(config, 'trainer.total_training_steps') as number);
}

/**
 * Ends a run that was stopped before its model was loaded, or an evaluation. Returns the error that prevented writing
 * this, if any.
 */
async function stoppedEarly(journal: Journal): Promise<Error | undefined> {
  journal.update({ state: 'stopped', phase: 'idle', download: undefined, eta_s: null });
  journal.event('state', 'stopped');
  return journal.sync().then(
    () => undefined,
    (error: Error) => error,
  );
}

/**
 * Returns the verified checkpoint to resume from: the named one or the newest. Null for a new run and for one that
 * ended before its first checkpoint.
 * Reads only. @throws UserError if the manifest or the checkpoint is damaged or belongs to another run
 */
async function startingPoint(
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
  return newestCheckpoint(folder.path, owner, name => `ragen resume ${folder.id} --checkpoint ${name}`);
}

/** Checks the logs and rolls the folder back to its checkpoint. Returns warnings about the logs. */
async function goBack(folder: RunFolder, checkpoint: StoredCheckpoint | null, accept: boolean): Promise<string[]> {
  const evaluates = onlyEvaluates(folder.manifest.config);
  const command = `ragen resume ${folder.id}${checkpoint ? ` --checkpoint ${basename(checkpoint.folder)}` : ''}`;
  const { notes, offsets } = evaluates
    ? await acceptEvaluation(folder, { accept, command })
    : await acceptLogs(folder, checkpoint, { accept, command });
  const step = checkpoint?.manifest.step ?? 0;
  if (checkpoint) await removeLater(folder.path, step);
  await rollBack(folder, step, offsets);
  if (accept && notes.length > 0) await adoptLogs(folder.path);
  return notes;
}

/**
 * Returns the verified checkpoint of another run that this run starts from (trainer.resume_mode=resume_path), or null.
 */
async function foreignStart(folder: RunFolder, workspace: string): Promise<StoredCheckpoint | null> {
  const { resume_mode, resume_from_path } = courseOf(folder);
  if (resume_mode !== 'resume_path' || resume_from_path === null) return null;
  const checkpoint = await openCheckpoint(resolve(workspace, resume_from_path));
  await verifyCheckpoint(checkpoint);
  return checkpoint;
}

const courseOf = (folder: RunFolder): RunConfig['trainer'] => storedConfig(folder).trainer;

/** Milliseconds that the process may stay alive after its run ended, if handles are still open. */
const lingerMs = 10_000;

main()
  .catch((error: Error) => {
    log.error({ stack: error.stack }, error.message);
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  })
  .finally(() => setTimeout(() => process.exit(), lingerMs).unref());
