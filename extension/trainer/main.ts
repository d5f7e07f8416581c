// Entry point of the trainer: `node trainer.cjs --run <folder> [--workspace <folder>] [--resume] [--checkpoint
// step-000100] [--trust-code <sha256>] [--accept-damaged-logs] [--set key=value]…` trains or evaluates one run
// (run/run-serving.ts). The process first acquires the run's lease, so that no second trainer works on the run. Standard
// error is the run's trainer.log. This file contains what belongs to the process: arguments, signals, log, lease, and
// the handling of unexpected errors.
import { parseArgs } from 'node:util';
import pino from 'pino';
import { runFiles } from '../run-data/run-file-names';
import { UserError } from '../common/user-error';
import type { Journal } from './run/journal';
import type { Watchers } from './run/status-writer';
import { RunControl } from './run/run-control';
import { clearPrinted, secrets } from '../node/secrets';
import { resumeSettings } from './run/resume-settings';
import { folderGone, acquireLease, newToken } from './store/held-lease';
import type { HeldLease } from './store/held-lease';
import { rotateLog } from './store/rotate-log';
import { RunFolder } from './store/run-folder';
import { firstStatus, serveToEnd, startFrom } from './run/run-serving';
import { requireNoLinks, requireTrusted } from './run/trusted-run';
import { FileRequests } from './live/file-requests';
import { TrainerServer, endpointFor } from './live/trainer-server';

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
const inProgress: { journal?: Journal | undefined; lease?: HeldLease; dying?: true } = {};

/** Time limit for writing the final status, in milliseconds. */
const flushTimeoutMs = 3000;

// Handles an error outside the run's control flow, for example from a stream event or an unhandled rejection. The state
// of the trainer is unknown afterwards, so the process ends. All written steps stay on disk.
process.on('uncaughtException', (error: unknown) => {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  if (inProgress.dying) return; // later errors are consequences of the first error
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
    const ofProcess = {
      log,
      onJournal: (journal: Journal | undefined) => void (inProgress.journal = journal),
      onFolderGone: () => abandon(folderGone(folder)),
    };
    await withControl(folder, { endpoint, token }, (control, watchers) =>
      serveToEnd(
        { folder, workspace: values.workspace, control, watchers, ...ofProcess },
        first,
        values['accept-damaged-logs'],
      ),
    );
  } finally {
    lease.release();
  }
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

/** The process exits this many milliseconds after the end of the run, even if handles are open. */
const lingerMs = 10_000;

main()
  .catch((error: Error) => {
    log.error({ stack: error.stack }, error.message);
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  })
  .finally(() => setTimeout(() => process.exit(), lingerMs).unref());
