// A trainer client for tests: connects to the socket as the extension host does, and records all received messages.
import { createConnection } from 'node:net';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node';
import type { MessageConnection } from 'vscode-jsonrpc/node';
import type { RunEvent } from '../../extension/run-data/run-events';
import type { RunStatus } from '../../extension/run-data/run-status-file';
import { appended, eventHappened, hello, statusChanged } from '../../extension/protocol/trainer-link';
import type { Welcome } from '../../extension/protocol/trainer-link';
import { leaseOf, until } from './terminal';

export interface Watcher {
  link: MessageConnection;
  statuses: { status: RunStatus; fraction: number }[];
  events: RunEvent[];
  appended: { file: string; bytes: number; step: number }[];
  /** Resolves when the trainer closes the connection. */
  closed: Promise<void>;
  hello(token: string): Promise<Welcome>;
  close(): void;
}

/** Connects without sending the hello message. */
export async function connect(endpoint: string): Promise<Watcher> {
  const socket = createConnection(endpoint);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => undefined);
  const link = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
  const watcher: Watcher = {
    link,
    statuses: [],
    events: [],
    appended: [],
    closed: new Promise(resolve => socket.once('close', () => resolve())),
    hello: token => link.sendRequest(hello, { token }),
    close: () => socket.destroy(),
  };
  link.onError(() => undefined);
  link.onNotification(statusChanged, message => void watcher.statuses.push(message));
  link.onNotification(eventHappened, event => void watcher.events.push(event));
  link.onNotification(appended, message => void watcher.appended.push(message));
  link.listen();
  return watcher;
}

/** Connects to the trainer of a run. */
export async function joinRun(run: string): Promise<Watcher> {
  const { endpoint, token } = await until('there is a lease', () => leaseOf(run));
  for (;;) {
    const watcher = await connect(endpoint).catch(() => null);
    if (watcher) {
      await watcher.hello(token);
      return watcher;
    }
    await until('the trainer listens', () => leaseOf(run));
  }
}
