// Routes requests of `ragen env serve` to the protocols: checks permissions, reads bodies up to the size limit, and
// answers each failure with a status and a sentence.
// Security: requests of clients execute the configured environment code. Every route except `openRoutes` requires the
// key. The check uses the matched method and route and never the raw path. Requests from web pages are refused, because
// a page can send requests to a loopback address. Such requests have an Origin or Sec-Fetch-Site header or, after DNS
// rebinding, the page's name in the Host header. Responses contain no file paths of this machine.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { timingSafeEquals } from '../../node/timing-safe-equal';
import { clientOf } from './connections';
import { BatchService, GymService, readMessage, writeMessage } from './gym-service';
import { mcpAnswer, openApi, OpenEnvService } from './openenv-service';
import { ServiceError, type Sessions } from './sessions';

export interface RouterOptions {
  /**
   * The API key that requests must contain. Undefined if no key is needed, which is allowed only on a loopback address.
   */
  apiKey: string | undefined;
  /** Maximum bytes of a request's body, and of a WebSocket message. */
  maxBodyBytes: number;
  /** Receives a line of text for each request that fails with an internal error. */
  onError(line: string): void;
}

const loopback = /^(localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/** Routes that need no key: health checks. */
const openRoutes: ReadonlySet<string> = new Set(['GET /health', 'GET /vagen/health']);

/**
 * Maximum bytes of a refused body that are read and discarded. If the body is longer, the connection is closed instead.
 */
const drainedBytes = 65_536;

/** Whether an address is reachable only from this machine. */
export const isLoopback = (host: string): boolean => loopback.test(host);

interface Admitted {
  /** Path without the environment's name and without trailing slashes. */
  route: string;
  environment?: string;
  query: URLSearchParams;
}

export class HttpRouter {
  readonly openenv: OpenEnvService;
  /** If true, each response closes its connection, because the server is shutting down. */
  isEnding = false;
  private readonly gym: GymService;
  private readonly batch: BatchService;

  constructor(
    private readonly sessions: Sessions,
    private readonly options: RouterOptions,
  ) {
    this.openenv = new OpenEnvService(sessions);
    this.gym = new GymService(sessions);
    this.batch = new BatchService(sessions);
  }

  /**
   * Checks whether a request is allowed, and determines its route and environment.
   * @param method HTTP method, or UPGRADE for a WebSocket
   * @throws ServiceError if the request is not allowed
   */
  admitted({ url = '/', headers }: IncomingMessage, method: string): Admitted {
    const { pathname, searchParams: query } = new URL(`http://server${url.startsWith('/') ? url : '/'}`);
    const site = headers['sec-fetch-site']; // browsers send this header even without an Origin
    if (headers.origin !== undefined || site === 'cross-site' || site === 'same-site')
      throw new ServiceError(403, 'requests from web pages are refused: send the request from a program');
    if (this.options.apiKey === undefined && !isLoopback(hostOf(headers.host)))
      throw new ServiceError(
        403,
        'requests whose Host header is not a loopback address are refused: send the request to 127.0.0.1',
      );
    const [, first = ''] = pathname.split('/');
    const name = decoded(first);
    const environment = this.sessions.names.includes(name) ? name : undefined;
    const rest = environment === undefined ? pathname : pathname.slice(first.length + 1);
    const route = rest.replace(/\/+$/, '') || '/';
    if (!openRoutes.has(`${method} ${route}`)) this.checkKey(headers, query);
    return { route, query, ...(environment !== undefined && { environment }) };
  }

  /** Answers a request. Disconnects a client that has accepted no data during the last `sendMs` milliseconds. */
  async respond(request: IncomingMessage, response: ServerResponse, sendMs: number): Promise<void> {
    const { socket } = request; // read now, because a request loses its socket if its body is not read completely
    const send = (status: number, type: string, body: Uint8Array | string, more: Record<string, string> = {}) => {
      const length = String(Buffer.byteLength(body));
      const headers = { 'content-type': type, 'content-length': length, 'x-content-type-options': 'nosniff', ...more };
      socket.setTimeout(sendMs); // Node.js closes the connection after this time without progress
      response.writeHead(status, this.isEnding ? { ...headers, connection: 'close' } : headers).end(body);
    };
    const isBatch = request.url?.startsWith('/vagen/') ?? false;
    try {
      const { type, body } = await this.answer(request);
      send(200, type, body);
    } catch (error) {
      const { status, message, retryAfter } = statusOf(error);
      if (status === 500) this.options.onError(`${request.method} ${request.url?.split('?')[0]}: ${String(error)}`);
      const rest = Number(request.headers['content-length'] ?? (request.headers['transfer-encoding'] ? Infinity : 0));
      request.resume(); // discards the remaining bytes of a refused body
      send(status, 'application/json', JSON.stringify({ [isBatch ? 'error' : 'detail']: message }), {
        ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
        ...(!request.complete && !(rest <= drainedBytes) && { connection: 'close' }),
      });
    }
  }

  private async answer(request: IncomingMessage): Promise<{ type: string; body: Uint8Array | string }> {
    const { method = 'GET', headers } = request;
    const { route, environment, query } = this.admitted(request, method);
    const client = clientOf(request.socket);
    if (route.startsWith('/vagen/'))
      return json(await this.batch.answer(method, route.slice('/vagen'.length), await this.jsonBody(request), client));
    const { openenv, gym } = this;
    const of: Record<string, () => Promise<{ type: string; body: Uint8Array | string }>> = {
      'GET /health': async () => json(this.health()),
      'GET /metadata': async () => json(await openenv.metadata(environment)),
      'GET /schema': async () => json(await openenv.schema(environment)),
      'GET /openapi.json': async () => json(openApi),
      'GET /state': async () => json(openenv.state(query.get('episode_id'), environment)),
      'POST /reset': async () => json(await openenv.reset(await this.jsonBody(request), client, environment)),
      'POST /step': async () => json(await openenv.step(await this.jsonBody(request), environment)),
      'POST /mcp': async () => json(mcpAnswer(await this.jsonBody(request).catch(() => undefined))),
      'GET /sessions': async () => json(gym.stats()),
      'POST /connect': async () => writeMessage(await gym.connect(await this.message(request), client, environment)),
      'POST /call': async () => writeMessage(await gym.call(await this.message(request))),
    };
    const found = of[`${method} ${route}`];
    if (found) return found();
    if (headers['content-length'] !== undefined) await this.body(request);
    const other = Object.keys(of).find(known => known.endsWith(` ${route}`));
    if (other) throw new ServiceError(405, `${route} takes ${other.split(' ')[0]}, not ${method}`);
    const names = this.sessions.names.join(', ');
    throw new ServiceError(
      404,
      `there is no ${route}: use a path of OpenEnv or GymService, alone or after /<name>, where <name> is one of ${names}`,
    );
  }

  /** Returns the response to a health check. It contains every field that any of the protocols requires. */
  private health(): Record<string, unknown> {
    const { names, maxSessions } = this.sessions;
    return {
      status: 'healthy',
      ok: true,
      service: 'gym-env-service',
      max_inflight: 'unlimited',
      environments: names,
      active_sessions: this.sessions.list().length,
      max_sessions: maxSessions,
    };
  }

  private checkKey(headers: IncomingMessage['headers'], query: URLSearchParams): void {
    const { apiKey } = this.options;
    if (apiKey === undefined) return;
    const bearer = /^Bearer\s+(?<key>.+)$/i.exec(headers.authorization ?? '')?.groups?.key;
    const given = [headers['x-api-key'], bearer, query.get('token')];
    if (!given.some(key => timingSafeEquals(key, apiKey))) throw new ServiceError(401, 'unauthorized');
  }

  private async message(request: IncomingMessage) {
    return readMessage(request.headers['content-type'] ?? '', await this.body(request));
  }

  private async jsonBody(request: IncomingMessage): Promise<unknown> {
    const body = await this.body(request);
    if (body.length === 0) return undefined;
    try {
      return JSON.parse(body.toString('utf8')) as unknown;
    } catch (error) {
      throw new ServiceError(400, `the body is not JSON (${(error as Error).message})`);
    }
  }

  private async body(request: IncomingMessage): Promise<Buffer> {
    const { maxBodyBytes } = this.options;
    const tooLarge = new ServiceError(413, `the body is larger than ${maxBodyBytes} bytes: send a smaller body`);
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity')
      throw new ServiceError(415, `the body is encoded as ${encoding}: send it without content-encoding`);
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge;
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > maxBodyBytes) throw tooLarge;
        chunks.push(chunk);
      }
    } catch (error) {
      if (error === tooLarge || request.complete) throw error;
      // nobody receives this: the client has disconnected
      throw new ServiceError(400, 'the body is shorter than its content-length');
    }
    return Buffer.concat(chunks);
  }
}

/** Returns the host name in a Host header, without the port; empty if the header is missing or invalid. */
function hostOf(header: string | undefined): string {
  const address = `http://${header ?? ''}`;
  return URL.canParse(address) ? new URL(address).hostname : '';
}

const json = (value: unknown) => ({ type: 'application/json', body: JSON.stringify(value) });

/** Status and sentence for a failed request. The sentence does not describe internal errors. */
export function statusOf(error: unknown): { status: number; message: string; retryAfter?: number } {
  if (error instanceof ServiceError) return error;
  return { status: 500, message: "internal server error: see the server's output" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
