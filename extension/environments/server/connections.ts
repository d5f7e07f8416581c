// Bounds a server's connections, in total and per client address, and serialises the requests of each connection: the
// next is answered after the previous response has been sent. A client that sends much and reads nothing therefore
// holds at most one response in memory, for at most `sendMs` without progress.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ServerLimits {
  /** Maximum number of concurrent connections. */
  maxConnections: number;
  /** Maximum number of concurrent connections per address. */
  maxClientConnections: number;
  /** Milliseconds in which a request's headers must arrive, also from the start of a connection. */
  headersMs: number;
  /** Milliseconds in which a complete request must arrive. */
  requestMs: number;
  /** Milliseconds for which a client may accept no data of a response before its connection is closed. */
  sendMs: number;
}

/** Maximum bytes of a request's line and headers. */
export const maxHeaderBytes = 8192;
/** Maximum number of requests per connection that wait for an earlier response. */
const mostWaiting = 32;

/**
 * The limits of a server for `maxSessions` sessions, each possibly with a connection of its own; given limits take
 * precedence.
 */
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

/** Identifies the client by its address, as there are no accounts. */
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

  /** Number of open connections. */
  get size(): number {
    return this.sockets.size;
  }

  /** Answers a request after the earlier ones on its connection were answered and the responses sent. */
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
    // After an upgrade the HTTP server no longer listens for errors, and an unhandled one ends the process.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.sockets.delete(socket);
      const left = this.ofClient.get(client)! - 1;
      if (left > 0) this.ofClient.set(client, left);
      else this.ofClient.delete(client);
    });
  }
}

/** Resolves once the response has been sent or can no longer be sent. */
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
