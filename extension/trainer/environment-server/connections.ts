// The connections of a server: how many there may be, in all and of one client's address, and the requests of each, which are answered
// one after the other, the next when the answer before it has left this process. So a client that sends much and reads nothing holds one
// answer of the server's memory at most, until `sendMs` pass in which it takes nothing of it.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ServerLimits {
  /** Connections at a time, in all. */
  maxConnections: number;
  /** Connections at a time of one address. */
  maxClientConnections: number;
  /** Milliseconds in which the headers of a request must come; also from the beginning of a connection. */
  headersMs: number;
  /** Milliseconds in which the whole of a request must come. */
  requestMs: number;
  /** Milliseconds in which a client takes nothing of an answer, after which its connection ends. */
  sendMs: number;
}

/** Bytes of a request's line and headers. */
export const maxHeaderBytes = 8192;
/** Requests of a connection that may wait for the answer to an earlier one. */
const mostWaiting = 32;

/** The limits of a server for `maxSessions` sessions, each of which may be a connection of its own, as far as none are given. */
export function serverLimits(maxSessions: number, given: Partial<ServerLimits> = {}): ServerLimits {
  return {
    maxConnections: Math.max(512, 2 * maxSessions + 64),
    maxClientConnections: Math.max(256, maxSessions + 64),
    headersMs: 10_000,
    requestMs: 60_000,
    sendMs: 60_000,
    ...given,
  };
}

/** Who asks, as far as a server without accounts can tell: the address. */
export const clientOf = ({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string =>
  remoteAddress.replace(/^::ffff:/, '');

interface Queue {
  waiting: number;
  last: Promise<void>;
}

export class Connections {
  private readonly sockets = new Set<Socket>();
  private readonly ofClient = new Map<string, number>();
  private readonly queues = new WeakMap<Socket, Queue>();

  constructor(
    server: Server,
    private readonly limits: ServerLimits,
  ) {
    server.maxConnections = limits.maxConnections;
    server.on('connection', (socket: Socket) => this.admit(socket));
  }

  /** Connections that are open. */
  get size(): number {
    return this.sockets.size;
  }

  /** Answers a request when those that came before it on its connection are answered and taken by the client. */
  inTurn(response: ServerResponse, respond: () => Promise<void>): void {
    const socket = response.req.socket;
    const queue = this.queues.get(socket) ?? { waiting: 0, last: Promise.resolve() };
    this.queues.set(socket, queue);
    if (++queue.waiting > mostWaiting) return void socket.destroy();
    queue.last = queue.last.then(async () => {
      if (!socket.destroyed) {
        socket.setTimeout(0);
        const taken = closed(response, socket);
        await respond();
        await taken;
      }
      queue.waiting--;
    });
  }

  destroyAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private admit(socket: Socket): void {
    const client = clientOf(socket);
    const count = (this.ofClient.get(client) ?? 0) + 1;
    if (count > this.limits.maxClientConnections) return void socket.destroy();
    this.ofClient.set(client, count);
    this.sockets.add(socket);
    // An upgraded connection has no listener of the HTTP server's any more, and an error without one ends the process.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.sockets.delete(socket);
      const left = this.ofClient.get(client)! - 1;
      if (left > 0) this.ofClient.set(client, left);
      else this.ofClient.delete(client);
    });
  }
}

/** Resolves when the response has left this process, or never will. */
function closed(response: ServerResponse, socket: Socket): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      response.off('close', done);
      socket.off('close', done);
      resolve();
    };
    response.once('close', done);
    socket.once('close', done);
  });
}
