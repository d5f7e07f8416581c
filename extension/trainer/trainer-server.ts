// Serves one run to watchers: JSON-RPC over a socket in the run folder (a named pipe on Windows) that its owner alone may open from its
// first moment on. A watcher must say `hello` with the lease's token first; whoever says another is cut off, as is whoever takes too long or
// sends too much before. Status goes out at most ten times a second. A watcher that goes wrong, by
// leaving, by not reading or by sending nonsense, never harms the run or the other watchers.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ResponseError, ErrorCodes } from 'vscode-jsonrpc/node';
import type { MessageConnection, MessageWriter } from 'vscode-jsonrpc/node';
import type { RunEvent, RunStatus } from '../protocol/run-folder';
import { clearedWriter } from './cleared-writer';
import { socketMessages } from '../protocol/socket-messages';
import { UserError } from '../protocol/user-error';
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
} from '../protocol/trainer-link';
import type { Viewer } from './live-view';
import type { RunControl } from './run-control';
import { isSameSecret } from './same-secret';

/** Unix limits the bytes of a socket's path (104 on macOS); of a longer one Node.js would take the beginning, which is another place. */
const longestPath = 100;
const statusEveryMs = 100;
/** How long a stranger stays connected after being refused. */
const hangUpMs = 100;
/** How long a watcher may take to read the last messages. */
const lastWordsMs = 1000;
/** A connection that has left so many messages unread, answers among them (a suspended editor), is cut off; it can join again. */
const mostUnread = 1000;
/** Until they have said hello, connections have so long, so many bytes, and there are so many of them: the oldest makes room. */
const [helloMs, helloBytes, mostStrangers] = [5000, 65_536, 16];
/** Bytes of a message of a watcher. */
const largestMessage = 2 ** 22;

export interface ServedRun {
  id: string;
  token: string;
  control: RunControl;
  status(): RunStatus;
}

/**
 * Where the socket of a run goes: in its folder, or where that path is too long in a folder of its own in the temporary one, or in /tmp
 * where that one's path is too long as well.
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
  /** Who has said hello. */
  private readonly watchers = new Map<MessageConnection, Socket>();
  private readonly sockets = new Set<Socket>();
  /** Who has not said hello yet, the oldest first, with what ends their time. */
  private readonly strangers = new Map<Socket, NodeJS.Timeout>();
  private lastStatus = -Infinity;
  private pending?: NodeJS.Timeout;

  private constructor(
    private readonly server: Server,
    private readonly endpoint: string,
    /** The folder that was made for it. */
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
      // The socket is made within this call: with these rights, and not with wider ones that are narrowed later.
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

  /** Hangs up when what was answered is sent; a watcher that does not read, or stops in the middle of a message, is not waited for. */
  async close(): Promise<void> {
    clearTimeout(this.pending);
    for (const socket of this.sockets) socket.end();
    const deadline = setTimeout(() => this.sockets.forEach(socket => socket.destroy()), lastWordsMs);
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
    const sent = (async () => send(connection))(); // throws at once where the connection is closed
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
      run.control.endDebugging(connection).catch(() => undefined); // the environments are gone, and with them what was halted
      this.sockets.delete(socket);
      connection.dispose();
    });
    const known = <T>(answer: () => T): T => {
      if (!this.watchers.has(connection))
        throw new ResponseError(ErrorCodes.InvalidRequest, 'say hello with the token first');
      return answer();
    };
    connection.onRequest(hello, ({ token }) => {
      if (!isSameSecret(token, run.token)) {
        setTimeout(() => socket.end(), hangUpMs); // the answer goes out first
        throw new ResponseError(ErrorCodes.InvalidRequest, 'wrong token');
      }
      this.greeted(socket);
      this.watchers.set(connection, socket);
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
    connection.onRequest(change, ({ values, checkOnly }) =>
      known(() => {
        try {
          return control.change(values, checkOnly === true);
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

/** The same writer, which calls `full` where more than `mostUnread` messages wait for the reader. */
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
