// Limits a server's connections, in total and per client address. Also orders the requests of each connection: a
// request is answered only after the response to the previous request has been sent. Therefore a client that sends many
// requests and reads no responses makes the server keep only one response in memory. Such a client is disconnected
// after `sendMs` milliseconds without progress.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ServerLimits {
  /** Maximum number of open connections. */
  maxConnections: number;
  /** Maximum number of open connections per client address. */
  maxClientConnections: number;
  /**
   * Maximum milliseconds until a request's headers have arrived. For the first request, the time starts when the
   * connection opens.
   */
  headersMs: number;
  /** Maximum milliseconds until a complete request has arrived. */
  requestMs: number;
  /** Milliseconds after which a connection is closed if its client has accepted no data of a response. */
  sendMs: number;
}

/** Maximum bytes of a request's first line and headers. */
export const maxHeaderBytes = 8192;
/** Maximum number of pending requests per connection; a connection that sends more is closed. */
const mostWaiting = 32;

/**
 * Returns the default limits of a server with at most `maxSessions` sessions, each of which may use its own connection.
 * Values in `given` override the defaults.
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

/** Returns the client's address. It identifies the client, because the server has no accounts. */
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

  /** Answers a request after the responses to all earlier requests of the same connection have been sent. */
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
    // After an upgrade the HTTP server no longer handles the socket's errors, and an unhandled error ends the process.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.sockets.delete(socket);
      const left = this.ofClient.get(client)! - 1;
      if (left > 0) this.ofClient.set(client, left);
      else this.ofClient.delete(client);
    });
  }
}

/** Resolves when the response has been sent or can no longer be sent. */
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
