// Serves one run to watchers: JSON-RPC over a socket in the run folder (a named pipe on Windows). A watcher must say `hello` with the
// lease's token first; whoever says another is cut off. Status goes out at most ten times a second. A watcher that goes wrong, by
// leaving, by not reading or by sending nonsense, never harms the run or the other watchers.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createMessageConnection,
  SocketMessageReader,
  SocketMessageWriter,
  ResponseError,
  ErrorCodes,
} from 'vscode-jsonrpc/node';
import type { MessageConnection } from 'vscode-jsonrpc/node';
import type { RunEvent, RunStatus } from '../protocol/run-folder';
import {
  appended,
  checkpoint,
  eventHappened,
  hello,
  pause,
  resume,
  statusChanged,
  stop,
} from '../protocol/trainer-link';
import type { RunControl } from './run-control';

/** Unix limits the length of a socket's path (104 on macOS). */
const longestPath = 100;
const statusEveryMs = 100;
/** How long a stranger stays connected after being refused. */
const hangUpMs = 100;
/** How long a watcher may take to read the last messages. */
const lastWordsMs = 1000;
/** A watcher that has left so many messages unread (a suspended editor) is cut off; it can join again. */
const mostUnread = 1000;

export interface ServedRun {
  id: string;
  token: string;
  control: RunControl;
  status(): RunStatus;
}

/** Where the socket of a run goes: in its folder, or in the temporary folder when that path is too long. */
export function endpointFor(runFolder: string, id: string): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\ragen-${id}-${process.pid}`;
  const inside = join(runFolder, 'trainer.sock');
  return inside.length <= longestPath ? inside : join(tmpdir(), `ragen-${process.pid}-${Date.now().toString(36)}.sock`);
}

export class TrainerServer {
  /** Who has said hello, with the number of messages on their way to them. */
  private readonly watchers = new Map<MessageConnection, { socket: Socket; unread: number }>();
  private readonly sockets = new Set<Socket>();
  private lastStatus = 0;
  private pending?: NodeJS.Timeout;

  private constructor(
    private readonly server: Server,
    private readonly endpoint: string,
  ) {}

  static async listen(endpoint: string, run: ServedRun): Promise<TrainerServer> {
    if (process.platform !== 'win32') rmSync(endpoint, { force: true });
    const server = createServer();
    const served = new TrainerServer(server, endpoint);
    server.on('connection', socket => served.accept(socket, run));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(endpoint, resolve);
    });
    if (process.platform !== 'win32') chmodSync(endpoint, 0o600);
    return served;
  }

  status(status: RunStatus, fraction: number): void {
    const now = Date.now();
    clearTimeout(this.pending);
    const send = (): void => {
      this.lastStatus = Date.now();
      this.each(watcher => watcher.sendNotification(statusChanged, { status, fraction }));
    };
    if (now - this.lastStatus >= statusEveryMs) send();
    else this.pending = setTimeout(send, statusEveryMs);
  }

  appended(file: string, bytes: number, step: number): void {
    this.each(watcher => watcher.sendNotification(appended, { file, bytes, step }));
  }

  event(event: RunEvent): void {
    this.each(watcher => watcher.sendNotification(eventHappened, event));
  }

  /** Hangs up; a watcher that does not read is not waited for. */
  async close(): Promise<void> {
    clearTimeout(this.pending);
    for (const socket of this.sockets) socket.end();
    const deadline = setTimeout(() => this.sockets.forEach(socket => socket.destroy()), lastWordsMs);
    await new Promise<void>(resolve => this.server.close(() => resolve()));
    clearTimeout(deadline);
    if (process.platform !== 'win32') rmSync(this.endpoint, { force: true });
  }

  private each(send: (watcher: MessageConnection) => Promise<void>): void {
    for (const [connection, watcher] of this.watchers) {
      if (++watcher.unread > mostUnread) watcher.socket.destroy();
      const sent = (async () => send(connection))(); // throws at once where the connection is closed
      sent.then(
        () => watcher.unread--,
        () => watcher.socket.destroy(),
      );
    }
  }

  private accept(socket: Socket, run: ServedRun): void {
    this.sockets.add(socket);
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.watchers.delete(connection);
      this.sockets.delete(socket);
      connection.dispose();
    });
    connection.onError(() => socket.destroy());
    const known = <T>(answer: () => T): T => {
      if (!this.watchers.has(connection))
        throw new ResponseError(ErrorCodes.InvalidRequest, 'say hello with the token first');
      return answer();
    };
    connection.onRequest(hello, ({ token }) => {
      if (token !== run.token) {
        setTimeout(() => socket.end(), hangUpMs); // the answer goes out first
        throw new ResponseError(ErrorCodes.InvalidRequest, 'wrong token');
      }
      this.watchers.set(connection, { socket, unread: 0 });
      return { run: run.id, pid: process.pid, status: run.status() };
    });
    const { control } = run;
    const commanded = (command: () => void) => () =>
      known(() => {
        command();
        return run.status();
      });
    connection.onRequest(
      pause,
      commanded(() => control.pause()),
    );
    connection.onRequest(
      resume,
      commanded(() => control.resume()),
    );
    connection.onRequest(
      stop,
      commanded(() => control.stop()),
    );
    connection.onRequest(checkpoint, () => known(async () => ({ folder: await control.checkpoint() })));
    connection.listen();
  }
}
