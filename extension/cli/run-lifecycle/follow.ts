// Follows a run in the terminal: connects to the trainer for live progress, and reads all persistent data from the run
// folder. Draws one progress bar, and a table with one row per step. The first interrupt asks the trainer to stop the
// run; a second interrupt ends this command without waiting for the trainer.
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestType } from 'vscode-jsonrpc/node';
import { jsonOrNothing } from '../../common/json';
import { eventSchema } from '../../run-data/run-events';
import { metricsLineSchema } from '../../run-data/step-lines';
import { runFiles } from '../../run-data/run-file-names';
import type { MetricsLine } from '../../run-data/step-lines';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import type { Lease } from '../../run-data/lease-file';
import { askByFile, isElsewhere } from '../../node/run-requests';
import { socketMessages } from '../../node/socket-messages';
import { change, hello, isLocalEndpoint, statusChanged, stop } from '../../protocol/trainer-link';
import { UserError } from '../../common/user-error';
import type { RequestedChange } from '../../trainer/live/pending-settings';
import { LeaseWatch, readLease } from '../../trainer/store/held-lease';
import { readLines, readValues } from '../../trainer/store/line-log';
import type { RunFolder } from '../../trainer/store/run-folder';
import type { StepTable } from '../output/step-table';
import { FollowedLines } from './followed-lines';

/** Milliseconds between checks of the folder when no message arrives. */
const pollMs = 250;

/** Milliseconds within which a trainer must respond to a connection attempt, to `hello`, or to a command. */
const answerMs = 10_000;
/**
 * Milliseconds after which a command fails if the lease of a run shows that its trainer is alive, but the trainer
 * cannot be reached.
 */
const reachMs = 30_000;
/** Milliseconds within which a trainer on another machine must reply through the run folder. */
const fileReplyMs = 30_000;

/** Sends requests to a trainer. */
export interface TrainerLink {
  /** @throws UserError if no reply arrives in time */
  ask<P, R>(type: RequestType<P, R, void>, params: P): Promise<R>;
  dispose(): void;
}

/**
 * Follows a run until its trainer has ended; returns the run's last status. If `halt` is given, the caller handles
 * interrupts and aborts `halt` to stop the run. `isOver` receives the state of the lease and returns whether the run
 * has ended.
 */
export async function follow(
  folder: RunFolder,
  table: StepTable | null,
  halt?: AbortSignal,
  limits = { answerMs, reachMs },
  isOver: (lease: ReturnType<LeaseWatch['look']>) => boolean = state => state === 'gone',
): Promise<RunStatus | null> {
  const metrics = new FollowedLines(offset =>
    readValues(folder.file(runFiles.metrics), line => metricsLineSchema.parse(line), offset),
  );
  const events = new FollowedLines(offset => eventsFrom(folder, offset));
  let connection: TrainerLink | undefined;
  const lease = new LeaseWatch(folder.path);
  const showNew = (): void => {
    for (const line of metrics.unread()) table?.row(line);
    for (const event of events.unread()) table?.event(event);
  };
  let interrupted = false;
  const interrupt = (): void => {
    if (interrupted) {
      table?.close();
      process.stderr.write(
        `\nThe run continues: see ragen runs, or the RAGEN view in VS Code. Folder: ${folder.path}\n`,
      );
      process.exit(130);
    }
    interrupted = true;
    table?.note(
      'Stopping the run; ragen resume then repeats the unfinished step. Interrupt again to end this command without waiting.',
    );
  };
  let requested = false; // whether the stop request was sent to the connected trainer
  let lost = performance.now(); // start of the wait for an accepted stop request
  const requestStop = (): void => {
    if (requested || !(interrupted || halt?.aborted)) return;
    if (performance.now() - lost > limits.reachMs) throw unreachable(folder, limits.reachMs);
    if (!connection) return;
    requested = true;
    const trainer = connection;
    trainer.ask(stop, null).then(
      () => (lost = Infinity),
      () => {
        requested = false;
        trainer.dispose();
        if (connection === trainer) connection = undefined;
      },
    );
  };
  if (!halt) process.on('SIGINT', interrupt);
  try {
    for (;;) {
      connection ??= await joinTrainer(
        folder,
        (status, fraction) => table?.progress(status, fraction),
        () => (connection = undefined),
        limits.answerMs,
      );
      requestStop();
      showNew();
      const status = folder.readStatus();
      if (isOver(lease.look())) {
        showNew();
        const last = folder.readStatus();
        if (last) table?.status(last); // the trainer may have ended before it sent this status
        return last;
      }
      if (status) table?.status(status);
      await sleep(pollMs);
    }
  } finally {
    process.off('SIGINT', interrupt);
    connection?.dispose();
    table?.close();
  }
}

/** Yields the metric lines of a run one at a time, because the log may be larger than memory. */
export function* metricLines(folder: RunFolder): Generator<MetricsLine> {
  for (const { value } of readValues(folder.file(runFiles.metrics), line => metricsLineSchema.parse(line))) yield value;
}

/**
 * Yields the events of a run one at a time. Skips invalid lines: events are only displayed, so a missing event changes
 * no result.
 */
export function* eventLines(folder: RunFolder): Generator<RunEvent> {
  for (const { value } of eventsFrom(folder, 0)) yield value;
}

function* eventsFrom(folder: RunFolder, offset: number): Generator<{ value: RunEvent; next: number }> {
  try {
    for (const { text, next } of readLines(folder.file(runFiles.events), offset)) {
      const { data } = eventSchema.safeParse(jsonOrNothing(text));
      if (data) yield { value: data, next };
    }
  } catch (error) {
    if (!(error instanceof UserError)) throw error; // reading ends at a line that exceeds the size limit
  }
}

/**
 * Resolves to the trainer's answer to a command.
 * @throws UserError if the answer does not arrive within `limitMs`
 */
async function answered<T>(folder: RunFolder, answer: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unreachable(folder, limitMs)), limitMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Changes settings of the run that a connected trainer serves. @throws UserError if the trainer rejects the values */
export async function changeSettings(trainer: TrainerLink, values: Record<string, number>): Promise<RequestedChange> {
  try {
    return await trainer.ask(change, { values });
  } catch (error) {
    throw new UserError((error as Error).message);
  }
}

const unreachable = (folder: RunFolder, limitMs: number): UserError =>
  new UserError(
    `run ${folder.id}: the trainer named in the run's lease did not answer within ${limitMs / 1000} s: see the run's trainer.log, and remove ${folder.file(runFiles.lease)} if no trainer is running`,
  );

/**
 * Connects to the trainer of a run. If the trainer is on another machine, requests go through the run folder, and no
 * live progress arrives. Returns undefined if the trainer cannot be reached, does not answer `hello` in time, or serves
 * another run.
 */
export async function joinTrainer(
  folder: RunFolder,
  onStatus?: (status: RunStatus, fraction: number) => void,
  onClose?: () => void,
  limitMs = answerMs,
): Promise<TrainerLink | undefined> {
  const lease = readLease(folder.path)?.lease;
  if (!lease) return undefined;
  const connected = await connect(folder, lease, onStatus, onClose, limitMs);
  if (connected ?? !isElsewhere(lease)) return connected;
  return {
    ask: (type, params) => askByFile(folder.path, lease, type, params, fileReplyMs),
    dispose: () => undefined,
  };
}

/**
 * Connects to the socket that a lease names. Returns undefined if the trainer on this machine cannot be reached, does
 * not answer `hello` in time, or serves another run.
 */
async function connect(
  folder: RunFolder,
  lease: Lease,
  onStatus: (status: RunStatus, fraction: number) => void = () => undefined,
  onClose: () => void = () => undefined,
  limitMs: number,
): Promise<TrainerLink | undefined> {
  if (!isLocalEndpoint(lease.endpoint, process.platform === 'win32')) return undefined;
  const socket = createConnection({ path: lease.endpoint });
  const connected = await new Promise<boolean>(resolve => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    // A time limit is needed because the trainer may hang: the system then queues the connection, but the trainer never
    // accepts it.
    socket.setTimeout(limitMs, () => resolve(false));
  });
  socket.setTimeout(0);
  if (!connected) return void socket.destroy();
  const connection = socketMessages(socket);
  socket.on('close', () => {
    connection.dispose(); // rejects pending requests
    onClose();
  });
  let isOurs = false; // false until the reply to `hello` shows that the trainer serves this run
  connection.onNotification(statusChanged, ({ status, fraction }) => {
    if (isOurs) onStatus(status, fraction);
  });
  connection.listen();
  try {
    const { run } = await answered(folder, connection.sendRequest(hello, { token: lease.token }), limitMs);
    isOurs = run === folder.id;
    if (isOurs)
      return {
        ask: (type, params) => answered(folder, connection.sendRequest(type.method, params), limitMs),
        dispose: () => connection.dispose(),
      };
  } catch {
    // The trainer has ended, or its token differs from the token in the lease.
  }
  socket.destroy(); // also if `run` differs: this folder is then a copy of the run that the trainer serves
  return undefined;
}
