// The HTTP server of `ragen env serve`: accepts connections within limits (connections.ts), passes requests and
// WebSockets to the router (http-router.ts), and lets running requests finish at shutdown. Each environment has its own
// base address, /<name>; the root address serves the first environment. No framework is used: hono and fastify limit
// the size of bodies, but not the number of connections per client or the memory of unread responses.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { UserError } from '../../common/user-error';
import { BoundedSocket } from './bounded-socket';
import { clientOf, Connections, maxHeaderBytes, serverLimits, type ServerLimits } from './connections';
import { HttpRouter, isLoopback, statusOf, type RouterOptions } from './http-router';
import { ServiceError, Sessions, type SessionOptions } from './sessions';

export interface EnvironmentServerOptions extends SessionOptions, RouterOptions {
  host: string;
  /** Port number; 0 selects any free port. */
  port: number;
  /** Limits on connections and on slow clients; default `serverLimits`. */
  limits?: Partial<ServerLimits>;
}

export interface EnvironmentServer {
  /** Base address, such as http://127.0.0.1:8000. */
  url: string;
  sessions: Sessions;
  /** Number of open connections. */
  readonly connections: number;
  /**
   * Shuts down: running requests may finish for up to 5 s, then all sessions and connections are closed. Repeated calls
   * return the same promise.
   */
  close(): Promise<void>;
}

/** Maximum milliseconds for which running requests may finish at shutdown. */
const shutdownTimeoutMs = 5000;

/**
 * Number of times that the server looks for slow requests during the shorter of the limits `headersMs` and `requestMs`.
 */
const looksPerLimit = 4;

/**
 * Starts the server.
 * @throws UserError if other machines can reach the address and no key is set, or if the server cannot listen on the
 * address
 */
export async function startEnvironmentServer(options: EnvironmentServerOptions): Promise<EnvironmentServer> {
  const { host, port, apiKey, maxBodyBytes } = options;
  if (apiKey === undefined && !isLoopback(host))
    throw new UserError(
      `env serve: --host ${host} can be reached by other machines: set --api-key-env to the name of an environment variable that contains a key, or use --host 127.0.0.1`,
    );
  const sessions = new Sessions(options);
  const router = new HttpRouter(sessions, options);
  const limits = serverLimits(options.maxSessions, options.limits);
  const http = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(limits.headersMs, limits.requestMs) / looksPerLimit,
      maxHeaderSize: maxHeaderBytes,
      keepAlive: true, // the system detects clients that no longer exist
    },
    (request, response) => connections.inTurn(response, () => router.respond(request, response, limits.sendMs)),
  );
  http.maxHeadersCount = 0; // a maximum count would drop headers, possibly Origin; their size is limited instead
  const connections = new Connections(http, limits);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxBodyBytes, perMessageDeflate: false });
  http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    try {
      const { route, environment } = router.admitted(request, 'UPGRADE');
      if (route !== '/ws') throw new ServiceError(404, `there is no WebSocket at ${route}: use /ws`);
      sockets.handleUpgrade(request, socket, head, opened => {
        const bounded = new BoundedSocket(opened, socket, limits.sendMs);
        void router.openenv.converse(bounded, clientOf(socket), environment);
      });
    } catch (error) {
      const { status, message } = statusOf(error);
      const body = JSON.stringify({ detail: message });
      socket.setTimeout(limits.sendMs, () => socket.destroy());
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
        () => socket.destroy(), // even if the client does not close its side
      );
    }
  });
  await new Promise<void>((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${error.code ?? error.message})`;
      reject(new UserError(`env serve: ${host}:${port} ${taken}: choose another address with --host and --port`));
    });
    http.listen(port, host, resolve);
  }).catch(async (error: unknown) => {
    await sessions.closeAll();
    throw error;
  });

  let ending: Promise<void> | undefined;
  const end = async () => {
    router.isEnding = true;
    const ended = new Promise(resolve => http.close(resolve));
    http.closeIdleConnections();
    const timer = setTimeout(() => {
      for (const socket of sockets.clients) socket.terminate();
      connections.destroyAll();
    }, shutdownTimeoutMs);
    await sessions.closeAll(); // waits for each session's current work; also closes its WebSocket
    for (const socket of sockets.clients) socket.close(1001);
    await ended;
    clearTimeout(timer);
  };
  const at = (http.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${at}`,
    sessions,
    get connections() {
      return connections.size;
    },
    close: () => (ending ??= end()),
  };
}
