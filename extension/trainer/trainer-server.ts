// Serves one run to watchers: JSON-RPC over a socket in the run folder (a named pipe on Windows). A watcher must say `hello` with the
// lease's token first; whoever does not is cut off. Status goes out at most ten times a second.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter, ResponseError, ErrorCodes } from 'vscode-jsonrpc/node';
import type { MessageConnection } from 'vscode-jsonrpc/node';
import type { RunEvent, RunStatus } from '../protocol/run-folder';
import { appended, checkpoint, eventHappened, hello, pause, resume, statusChanged, stop } from '../protocol/trainer-link';
import type { RunControl } from './run-control';

/** Unix limits the length of a socket's path (104 on macOS). */
const longestPath = 100;
const statusEveryMs = 100;

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
  private readonly watchers = new Set<MessageConnection>();
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

  async close(): Promise<void> {
    clearTimeout(this.pending);
    for (const socket of this.sockets) socket.end();
    await new Promise<void>(resolve => this.server.close(() => resolve()));
    if (process.platform !== 'win32') rmSync(this.endpoint, { force: true });
  }

  private each(send: (watcher: MessageConnection) => Promise<void>): void {
    for (const watcher of this.watchers) send(watcher).catch(() => this.watchers.delete(watcher));
  }

  private accept(socket: Socket, run: ServedRun): void {
    this.sockets.add(socket);
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    const gone = (): void => {
      this.watchers.delete(connection);
      this.sockets.delete(socket);
    };
    socket.on('error', gone);
    connection.onClose(gone);
    connection.onError(gone);
    const known = <T>(answer: () => T): T => {
      if (!this.watchers.has(connection)) throw new ResponseError(ErrorCodes.InvalidRequest, 'say hello with the token first');
      return answer();
    };
    connection.onRequest(hello, ({ token }) => {
      if (token !== run.token) {
        socket.end();
        throw new ResponseError(ErrorCodes.InvalidRequest, 'wrong token');
      }
      this.watchers.add(connection);
      return { run: run.id, pid: process.pid, status: run.status() };
    });
    const { control } = run;
    const commanded = (command: () => void) => () =>
      known(() => {
        command();
        return run.status();
      });
    connection.onRequest(pause, commanded(() => control.pause()));
    connection.onRequest(resume, commanded(() => control.resume()));
    connection.onRequest(stop, commanded(() => control.stop()));
    connection.onRequest(checkpoint, () => known(async () => ({ folder: await control.checkpoint() })));
    connection.listen();
  }
}
