// Follows a run in the terminal: joins the trainer for live progress, reads the run folder for everything lasting, and draws one bar
// and a table that grows by a row a step. Interrupting asks the run to stop after the step in hand; twice leaves it running.
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageConnection } from 'vscode-jsonrpc/node';
import { metricsLineSchema, runFiles } from '../../protocol/run-folder';
import type { MetricsLine, RunStatus } from '../../protocol/run-folder';
import { socketMessages } from '../../protocol/socket-messages';
import { hello, isLocalEndpoint, statusChanged, stop } from '../../protocol/trainer-link';
import { readLease } from '../store/lease';
import { readValues } from '../store/line-log';
import type { RunFolder } from '../store/run-folder';
import type { StepTable } from './step-table';

/** How often the folder is looked at when no message comes. */
const lookMs = 250;

/**
 * Follows until the trainer has ended; gives the run's last status. With `halt`, that asks the run to stop, and interrupts are the
 * caller's.
 */
export async function follow(
  folder: RunFolder,
  table: StepTable | null,
  halt?: AbortSignal,
): Promise<RunStatus | null> {
  let offset = 0;
  let connection: MessageConnection | undefined;
  const showNew = (): void => {
    for (const { value, next } of readValues(
      folder.file(runFiles.metrics),
      line => metricsLineSchema.parse(line),
      offset,
    )) {
      table?.row(value);
      offset = next;
    }
  };
  let asked = false;
  const interrupt = (): void => {
    if (asked) {
      table?.close();
      process.stderr.write(`\nThe run goes on: ragen runs, or RAGEN's view in VS Code. Folder: ${folder.path}\n`);
      process.exit(130);
    }
    asked = true;
    table?.note('Stopping after the step in hand (interrupt again to leave it running).');
  };
  let told = false; // whom: the trainer that is joined
  const tellToStop = (): void => {
    if (told || !connection || !(asked || halt?.aborted)) return;
    told = true;
    connection.sendRequest(stop, null).catch(() => (told = false));
  };
  if (!halt) process.on('SIGINT', interrupt);
  try {
    for (;;) {
      connection ??= await joinTrainer(
        folder,
        (status, fraction) => table?.progress(status, fraction),
        () => (connection = undefined),
      );
      tellToStop();
      showNew();
      const status = folder.readStatus();
      if (!readLease(folder.path)?.live) {
        showNew();
        const last = folder.readStatus();
        if (last) table?.status(last); // no message may have told of the end
        return last;
      }
      if (status) table?.status(status);
      await sleep(lookMs);
    }
  } finally {
    process.off('SIGINT', interrupt);
    connection?.dispose();
    table?.close();
  }
}

/** All metric lines of a run. */
export function metricLines(folder: RunFolder): MetricsLine[] {
  return [...readValues(folder.file(runFiles.metrics), line => metricsLineSchema.parse(line))].map(
    ({ value }) => value,
  );
}

/** Joins the trainer; undefined while it cannot be reached. */
export async function joinTrainer(
  folder: RunFolder,
  onStatus: (status: RunStatus, fraction: number) => void = () => undefined,
  onClose: () => void = () => undefined,
): Promise<MessageConnection | undefined> {
  const lease = readLease(folder.path)?.lease;
  if (!lease || !isLocalEndpoint(lease.endpoint, process.platform === 'win32')) return undefined;
  const socket = createConnection({ path: lease.endpoint });
  const connected = await new Promise<boolean>(resolve => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  if (!connected) return undefined;
  const connection = socketMessages(socket);
  socket.on('close', () => {
    connection.dispose(); // what was asked and not answered fails
    onClose();
  });
  connection.onNotification(statusChanged, ({ status, fraction }) => onStatus(status, fraction));
  connection.listen();
  try {
    const { run } = await connection.sendRequest(hello, { token: lease.token });
    if (run === folder.id) return connection;
  } catch {
    // It is gone, or knows another token.
  }
  socket.destroy(); // also where it is the trainer of a run that this folder is a copy of
  return undefined;
}
