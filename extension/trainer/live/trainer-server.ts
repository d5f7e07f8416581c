// Serves one run to watchers: JSON-RPC over a socket in the run folder (a named pipe on Windows). The socket is created
// with permissions for its owner only. A watcher must first send `hello` with the lease's token. The connection is
// closed if the token is wrong, if `hello` comes too late, or if too many bytes precede `hello`. Status is sent at most
// ten times per second. A watcher that disconnects, stops reading or sends invalid messages affects neither the run nor
// other watchers.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ResponseError, ErrorCodes } from 'vscode-jsonrpc/node';
import type { MessageConnection, MessageWriter } from 'vscode-jsonrpc/node';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import { clearedWriter } from '../../node/cleared-writer';
import { socketMessages } from '../../node/socket-messages';
import { UserError } from '../../common/user-error';
import {
  appended,
  change,
  checkpoint,
  coverEnvironments,
  debugEnvironments,
  endDebugging,
  eventHappened,
  hello,
  pause,
  resume,
  statusChanged,
  stop,
  watch,
  watchedEpisode,
  watchedTokens,
} from '../../protocol/trainer-link';
import type { Viewer } from './live-view';
import { runCommands, type ServedRun } from './run-commands';
import { timingSafeEquals } from '../../node/timing-safe-equal';

/**
 * Maximum bytes of a socket path. Unix limits the path (104 bytes on macOS), and Node.js would truncate a longer path,
 * so that the socket would be at another path.
 */
const longestPath = 100;
const statusEveryMs = 100;
/** Milliseconds between the reply to a wrong token and the closing of the connection. */
const hangUpMs = 100;
/** Milliseconds after which a closing server destroys connections whose watcher did not read the last messages. */
const closeTimeoutMs = 1000;
/**
 * Maximum number of messages, replies included, that wait until a watcher reads them. If more messages wait, for
 * example because the editor is suspended, the connection is closed. The watcher can connect again.
 */
const mostUnread = 1000;
/**
 * Limits for connections that have not sent `hello`: milliseconds and bytes per connection, and the number of such
 * connections. If there are more connections, the oldest one is closed.
 */
const [helloMs, helloBytes, mostStrangers] = [5000, 65_536, 16];
/** Maximum bytes of a message from a watcher. */
const largestMessage = 2 ** 22;

/**
 * Returns the path of a run's socket, which is normally in the run folder. If this path is too long, the socket is in a
 * new folder in the temporary directory. If that path is also too long, the new folder is in /tmp.
 */
export function endpointFor(runFolder: string, id: string): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\ragen-${id}-${process.pid}`;
  const fits = (path: string): boolean => Buffer.byteLength(path) <= longestPath;
  const inside = join(runFolder, 'trainer.sock');
  if (fits(inside)) return inside;
  const own = join(`ragen-${randomBytes(8).toString('hex')}`, 's');
  const temporary = join(tmpdir(), own);
  return fits(temporary) ? temporary : join('/tmp', own);
}

export class TrainerServer {
  /** Connections that have sent a valid `hello`. */
  private readonly watchers = new Map<MessageConnection, Socket>();
  private readonly sockets = new Set<Socket>();
  /** Connections that have not sent a valid `hello` yet, oldest first, each with its timeout. */
  private readonly strangers = new Map<Socket, NodeJS.Timeout>();
  private lastStatus = -Infinity;
  private pending?: NodeJS.Timeout;

  private constructor(
    private readonly server: Server,
    private readonly endpoint: string,
    /**
     * The folder that was created for the socket and is removed with the socket; undefined if the folder existed
     * before.
     */
    private readonly ownFolder: string | undefined,
  ) {}

  static async listen(endpoint: string, run: ServedRun): Promise<TrainerServer> {
    const isFile = process.platform !== 'win32';
    if (isFile) rmSync(endpoint, { force: true });
    const ownFolder = isFile ? mkdirSync(dirname(endpoint), { recursive: true, mode: 0o700 }) : undefined;
    const server = createServer();
    const served = new TrainerServer(server, endpoint, ownFolder);
    server.on('connection', socket => served.accept(socket, run));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // `listen` creates the socket synchronously, so the umask applies to the socket but to no other file.
      const usual = isFile ? process.umask(0o177) : undefined;
      try {
        server.listen(endpoint, resolve);
      } finally {
        if (usual !== undefined) process.umask(usual);
      }
    });
    return served;
  }

  status(status: RunStatus, fraction: number): void {
    const now = performance.now();
    clearTimeout(this.pending);
    const send = (): void => {
      this.lastStatus = performance.now();
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

  /**
   * Closes all connections after pending replies are sent. After `closeTimeoutMs`, destroys the connections whose
   * watcher does not read or has sent an incomplete message.
   */
  async close(): Promise<void> {
    clearTimeout(this.pending);
    for (const socket of this.sockets) socket.end();
    const deadline = setTimeout(() => this.sockets.forEach(socket => socket.destroy()), closeTimeoutMs);
    await new Promise<void>(resolve => this.server.close(() => resolve()));
    clearTimeout(deadline);
    if (process.platform !== 'win32') rmSync(this.endpoint, { force: true });
    if (this.ownFolder !== undefined) rmSync(this.ownFolder, { recursive: true, force: true });
  }

  private each(send: (watcher: MessageConnection) => Promise<void>): void {
    for (const connection of this.watchers.keys()) this.to(connection, send);
  }

  private to(connection: MessageConnection, send: (watcher: MessageConnection) => Promise<void>): void {
    const socket = this.watchers.get(connection);
    if (!socket) return;
    const sent = (async () => send(connection))(); // a closed connection may throw synchronously
    sent.catch(() => socket.destroy());
  }

  private greeted(socket: Socket): void {
    clearTimeout(this.strangers.get(socket));
    this.strangers.delete(socket);
  }

  private accept(socket: Socket, run: ServedRun): void {
    this.sockets.add(socket);
    const connection = socketMessages(
      socket,
      () => (this.strangers.has(socket) ? helloBytes : largestMessage),
      writer => boundedWriter(clearedWriter(writer), () => socket.destroy()),
    );
    this.strangers.set(
      socket,
      setTimeout(() => socket.destroy(), helloMs),
    );
    const [oldest] = this.strangers.keys();
    if (this.strangers.size > mostStrangers) oldest.destroy();
    socket.on('close', () => {
      this.greeted(socket);
      this.watchers.delete(connection);
      run.control.live.unwatch(connection);
      run.control.endDebugging(connection).catch(() => undefined); // fails only after the environments have stopped
      this.sockets.delete(socket);
      connection.dispose();
    });
    const known = <T>(answer: () => T): T => {
      if (!this.watchers.has(connection))
        throw new ResponseError(ErrorCodes.InvalidRequest, 'send hello with the token first');
      return answer();
    };
    connection.onRequest(hello, ({ token }) => {
      if (!timingSafeEquals(token, run.token)) {
        setTimeout(() => socket.end(), hangUpMs); // leaves time to send the reply
        throw new ResponseError(ErrorCodes.InvalidRequest, 'wrong token');
      }
      this.greeted(socket);
      this.watchers.set(connection, socket);
      return { run: run.id, pid: process.pid, status: run.status() };
    });
    const { control } = run;
    const commands = runCommands(run);
    connection.onRequest(pause, () => known(commands.pause));
    connection.onRequest(resume, () => known(commands.resume));
    connection.onRequest(stop, () => known(commands.stop));
    connection.onRequest(checkpoint, () => known(commands.checkpoint));
    connection.onRequest(change, request =>
      known(() => {
        try {
          return commands.change(request);
        } catch (error) {
          if (error instanceof UserError) throw new ResponseError(ErrorCodes.InvalidParams, error.message);
          throw error;
        }
      }),
    );
    connection.onRequest(debugEnvironments, () =>
      known(async () => ({ urls: await control.beginDebugging(connection) })),
    );
    connection.onRequest(endDebugging, () =>
      known(async () => {
        await control.endDebugging(connection);
        return run.status();
      }),
    );
    connection.onRequest(coverEnvironments, ({ on }) =>
      known(async () => {
        await control.cover(on === true);
        return run.status();
      }),
    );
    const viewer: Viewer = {
      episode: episode => this.to(connection, watcher => watcher.sendNotification(watchedEpisode, { episode })),
      tokens: (id, turn, at, tokens) =>
        this.to(connection, watcher => watcher.sendNotification(watchedTokens, { id, turn, at, tokens })),
    };
    connection.onRequest(watch, ({ on, tag, group }) =>
      known(() => {
        if (on) return control.live.watch(connection, viewer, { tag, group });
        control.live.unwatch(connection);
        return { tags: [], episode: null };
      }),
    );
    connection.listen();
  }
}

/** Makes `writer` call `full` when more than `mostUnread` messages are unread. Returns the same `writer`. */
function boundedWriter(writer: MessageWriter, full: () => void): MessageWriter {
  const write = writer.write.bind(writer);
  let unread = 0;
  writer.write = async message => {
    if (++unread > mostUnread) full();
    try {
      await write(message);
    } finally {
      unread--;
    }
  };
  return writer;
}
