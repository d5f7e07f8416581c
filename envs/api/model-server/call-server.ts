// A local HTTP server through which programs call the model. Each program has its own address, which contains a secret:
// `http://127.0.0.1:<port>/e/<number>/<secret>`. Its calls wait in order of arrival until they are answered.
// Security: the server admits programs on this machine only (../local-server.ts), and bounds bodies, waiting calls and
// slow requests. A program in a container may know this machine by another host name, which its requests then have as Host.
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isSameSecret, listenLocally, requestText, webPageRefusal } from '../local-server';
import type { ModelCall, ModelReply } from '../model-calls';
import { anthropicMessages } from './anthropic-messages';
import { chatCompletions } from './chat-completions';
import { responses } from './responses';
import { RequestError, type Protocol, type WireRequest, type WireResponse } from './wire';

/** Maximum bytes of a request's body. */
export const maxBodyBytes = 8 * 2 ** 20;
/** Maximum number of calls of one program that wait at the same time. */
export const mostWaiting = 64;
/** Milliseconds in which a request must arrive completely. */
const requestTimeoutMs = 60_000;

const protocols: readonly Protocol[] = [chatCompletions, responses, anthropicMessages];

/** A call that waits for its reply. */
export interface WaitingCall {
  call: ModelCall;
  /** Sends the reply. Does nothing if the program has closed the connection. */
  answer(reply: ModelReply): void;
  /** Sends an error instead. */
  refuse(error: RequestError): void;
}

/** The calls of one program. */
export class CallLine {
  private readonly waiting: WaitingCall[] = [];
  private readonly open = new Set<ServerResponse>();
  /** Number of requests whose bodies are being read. */
  private arriving = 0;
  private receive: ((call: WaitingCall) => void) | undefined;
  /** Number of calls so far; part of the ids of replies. */
  private count = 0;
  private isClosed = false;

  /**
   * @param address base address without `/v1`, as Anthropic's clients take it
   * @param host host name of the address
   * @param remove ends the line's route
   */
  constructor(
    readonly address: string,
    readonly host: string,
    readonly secret: string,
    private readonly remove: () => void,
  ) {}

  /** Base address of OpenAI's protocols. */
  get url(): string {
    return `${this.address}/v1`;
  }

  /** Resolves to the next call. Only one call may be awaited at a time; `closed` calls never arrive. */
  next(): Promise<WaitingCall> {
    const first = this.waiting.shift();
    return first ? Promise.resolve(first) : new Promise(resolve => (this.receive = resolve));
  }

  /** Ends the line: waiting requests are disconnected, and later requests are refused. */
  close(): void {
    this.isClosed = true;
    this.remove();
    this.receive = undefined;
    this.waiting.length = 0;
    for (const response of this.open) response.destroy();
  }

  /**
   * Reads a request's body. Bodies that are being read count as waiting calls, so that a program that floods the server
   * cannot fill its memory.
   */
  async read(request: IncomingMessage): Promise<unknown> {
    this.requireRoom();
    this.arriving++;
    try {
      return await jsonOf(request);
    } finally {
      this.arriving--;
    }
  }

  private requireRoom(): void {
    if (this.waiting.length + this.arriving >= mostWaiting)
      throw new RequestError(429, `${mostWaiting} calls of this program wait already: send fewer calls at a time`);
  }

  /** Adds a request to the line. */
  add({ call, respond }: WireRequest, response: ServerResponse, protocol: Protocol): void {
    if (this.isClosed) throw new RequestError(410, 'the episode is over: send no further calls');
    this.requireRoom();
    const id = `${this.secret.slice(0, 8)}-${++this.count}`;
    this.open.add(response);
    response.once('close', () => this.open.delete(response));
    const waiting: WaitingCall = {
      call,
      answer: reply => send(response, respond(reply, id)),
      refuse: error => sendError(response, protocol, error),
    };
    const { receive } = this;
    this.receive = undefined;
    if (receive) receive(waiting);
    else this.waiting.push(waiting);
  }
}

export class CallServer {
  private readonly lines = new Map<string, CallLine>();
  private count = 0;

  private constructor(
    private readonly http: Server,
    private readonly port: number,
  ) {}

  /**
   * Starts a server on 127.0.0.1.
   * @param port 0 for any free port
   */
  static async start(port = 0): Promise<CallServer> {
    const http = createServer({ requestTimeout: requestTimeoutMs, keepAlive: true }, (request, response) => {
      void server.respond(request, response);
    });
    const server = new CallServer(http, await listenLocally(http, port));
    return server;
  }

  /**
   * Opens an address for a program.
   * @param host host name or IPv4 address by which the program reaches 127.0.0.1 of this machine
   */
  open(host = '127.0.0.1'): CallLine {
    const id = String(++this.count);
    const secret = randomBytes(24).toString('hex');
    const address = `http://${host}:${this.port}/e/${id}/${secret}`;
    const line = new CallLine(address, host, secret, () => this.lines.delete(id));
    this.lines.set(id, line);
    return line;
  }

  /** Ends all lines and connections. */
  async close(): Promise<void> {
    for (const line of [...this.lines.values()]) line.close();
    const closed = new Promise(resolve => this.http.close(resolve));
    this.http.closeAllConnections();
    await closed;
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let protocol: Protocol = chatCompletions;
    try {
      const { line, route } = this.admitted(request);
      const method = `${request.method} ${route}`;
      if (method === 'GET /v1/models') return send(response, { json: models });
      const found = protocols.find(each => each.route === route);
      if (!found) throw new RequestError(404, `there is no ${method}: use ${routes}`);
      protocol = found;
      if (request.method !== 'POST') throw new RequestError(405, `${route} takes POST, not ${request.method}`);
      line.add(protocol.parse(await line.read(request)), response, protocol);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return; // the program closed the connection
      const known = error instanceof RequestError;
      if (!known) process.stderr.write(`call server: ${String(error)}\n`);
      request.resume(); // discards the rest of a refused body
      const refused = known ? error : new RequestError(500, 'the gateway failed: see its log');
      sendError(response, protocol, refused, request.complete);
    }
  }

  /** Returns the line and the route of a request. @throws RequestError if the request is not allowed */
  private admitted(request: IncomingMessage): { line: CallLine; route: string } {
    const {
      id = '',
      secret = '',
      route = '/',
    } = /^\/e\/(?<id>\d+)\/(?<secret>[0-9a-f]+)(?<route>\/[^?]*)/.exec(request.url ?? '/')?.groups ?? {};
    const line = this.lines.get(id);
    const refusal = webPageRefusal(request, line?.host);
    if (refusal !== undefined) throw new RequestError(403, refusal);
    if (!line || !isSameSecret(line.secret, secret))
      throw new RequestError(
        404,
        'there is no episode at this address, or it is over: use the address of this episode',
      );
    return { line, route: route.replace(/\/+$/, '') };
  }
}

let shared: Promise<CallServer> | undefined;

/** Returns the server of this thread, which the first call starts. */
export const callServer = (): Promise<CallServer> => (shared ??= CallServer.start());

const routes = [...protocols.map(({ route }) => `POST ${route}`), 'GET /v1/models'].join(', ');
const models = { object: 'list', data: [{ id: 'policy', object: 'model', created: 0, owned_by: 'ragen' }] };

function send(response: ServerResponse, body: WireResponse): void {
  if (response.destroyed || response.writableEnded) return;
  if ('json' in body) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body.json));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const lines = body.events.map(
    ({ event, data }) => `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`,
  );
  response.end(lines.join(''));
}

/** @param isRead whether the request's body has been read completely; otherwise the connection is closed */
function sendError(
  response: ServerResponse,
  protocol: Protocol,
  { status, message, parameter }: RequestError,
  isRead = true,
): void {
  if (response.destroyed || response.writableEnded) return;
  const headers = { 'content-type': 'application/json', ...(!isRead && { connection: 'close' }) };
  response.writeHead(status, headers).end(JSON.stringify(protocol.error(status, message, parameter)));
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw new RequestError(415, `the body is encoded as ${encoding}: send it without content-encoding`);
  const body = await requestText(request, maxBodyBytes);
  if (body === undefined)
    throw new RequestError(413, `the body is larger than ${maxBodyBytes} bytes: send a shorter conversation`);
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new RequestError(400, `the body is not JSON (${(error as Error).message}): send a JSON object`);
  }
}
