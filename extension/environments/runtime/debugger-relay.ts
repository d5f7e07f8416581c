// The address to which debuggers of the environment process attach. It relays their connections to Node's inspector,
// because Node (20 to 24) ends a debugger's sessions in worker threads only at `NodeWorker.detach`. If a connection ends
// without this command, a halted thread remains halted, and the breakpoints halt later calls. When a connection ends,
// the relay sends the command for each session that is left, so that halted calls continue.
import { createServer, get, type Server } from 'node:http';
import inspector from 'node:inspector';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocket, WebSocketServer, type RawData } from 'ws';

/** First id of the relay's own commands; debuggers count from 0 or 1. */
const firstOwnId = 1_000_000_000;

interface InspectorMessage {
  id?: number;
  method?: string;
  params?: { sessionId?: string };
}

export class DebuggerRelay {
  private readonly connections = new Set<RelayedDebugger>();

  private constructor(
    private readonly http: Server,
    /** WebSocket address of the relay. */
    readonly url: string,
  ) {}

  /** Opens Node's inspector and the relay on free ports of the loopback interface. */
  static async open(): Promise<DebuggerRelay> {
    if (inspector.url() === undefined) inspector.open(0, '127.0.0.1');
    const target = new URL(inspector.url()!);
    const http = createServer(({ url, headers }, response) => {
      // The inspector checks the host name, which prevents requests by web pages.
      const asked = get({ host: target.hostname, port: target.port, path: url, headers: { host: headers.host } });
      asked.on('error', () => response.destroy());
      asked.on('response', reply => {
        response.writeHead(reply.statusCode!, { 'content-type': reply.headers['content-type'] });
        const send = (body: string) => response.end(body.replaceAll(target.host, new URL(relay.url).host));
        text(reply).then(send, () => response.destroy());
      });
    });
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(0, '127.0.0.1', resolve);
    });
    const relay = new DebuggerRelay(http, `ws://127.0.0.1:${(http.address() as AddressInfo).port}${target.pathname}`);
    const sockets = new WebSocketServer({ server: http, path: target.pathname, maxPayload: 0 });
    sockets.on('connection', client => {
      const connection = new RelayedDebugger(client, target.href);
      relay.connections.add(connection);
      void connection.ended.then(() => relay.connections.delete(connection));
    });
    return relay;
  }

  /** Ends all connections and closes Node's inspector. Calls that were halted have then continued. */
  async close(): Promise<void> {
    this.http.close();
    for (const connection of this.connections) connection.end();
    await Promise.all([...this.connections].map(({ ended }) => ended));
    inspector.close();
  }
}

/** One debugger's connection and its sessions in the worker threads. */
class RelayedDebugger {
  /** Resolves when the connection and its sessions have ended. */
  readonly ended: Promise<void>;
  private readonly node: WebSocket;
  private readonly sessions = new Set<string>();
  private readonly unanswered = new Set<number>();
  private ids = firstOwnId;
  private closing = false;

  constructor(
    private readonly client: WebSocket,
    url: string,
  ) {
    this.node = new WebSocket(url, { maxPayload: 0, perMessageDeflate: false });
    const early: string[] = [];
    this.node.on('open', () => early.splice(0).forEach(text => this.node.send(text)));
    this.node.on('message', raw => this.fromNode(textOf(raw)));
    this.node.on('error', () => undefined); // a close event follows
    this.node.on('close', () => client.terminate());
    client.on('message', raw => {
      if (this.node.readyState === WebSocket.CONNECTING) early.push(textOf(raw));
      else if (!this.closing) this.node.send(textOf(raw));
    });
    client.on('error', () => undefined); // a close event follows
    client.on('close', () => this.detach());
    this.ended = new Promise(resolve => this.node.once('close', () => resolve()));
  }

  end(): void {
    this.client.terminate();
  }

  private fromNode(text: string): void {
    const { id, method, params } = JSON.parse(text) as InspectorMessage;
    const sessionId = params?.sessionId;
    if (method === 'NodeWorker.attachedToWorker' && sessionId !== undefined) this.sessions.add(sessionId);
    if (method === 'NodeWorker.detachedFromWorker' && sessionId !== undefined) this.sessions.delete(sessionId);
    if (id !== undefined && this.unanswered.delete(id)) this.closeDetached();
    else if (!this.closing) this.client.send(text);
  }

  private detach(): void {
    this.closing = true;
    for (const sessionId of this.sessions) {
      const id = this.ids++;
      this.unanswered.add(id);
      this.node.send(JSON.stringify({ id, method: 'NodeWorker.detach', params: { sessionId } }));
    }
    this.closeDetached();
  }

  private closeDetached(): void {
    if (this.closing && this.unanswered.size === 0) this.node.close();
  }
}

const textOf = (raw: RawData): string => (raw as Buffer).toString('utf8');
