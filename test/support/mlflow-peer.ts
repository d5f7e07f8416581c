// A server on this machine that answers as MLflow's REST API does, and can be broken: it refuses, hangs, or is closed.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export class MlflowPeer {
  /** Paths of the requests, in order. */
  readonly asked: string[] = [];
  readonly metrics: { key: string; value: number; step: number }[] = [];
  readonly params: { key: string; value: string }[] = [];
  readonly tags = new Map<string, string>();
  readonly artifacts = new Map<string, string>();
  readonly states: string[] = [];
  /** How requests are answered. */
  mode: 'answer' | 'unavailable' | 'forbidden' | 'hang' = 'answer';
  /** Number of next requests whose connection is closed without an answer. */
  closing = 0;
  private created = false;
  private server: Server | undefined;

  /** Starts the server and returns its address. */
  async open(): Promise<string> {
    this.server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        if (this.mode === 'hang') return;
        if (this.closing > 0) {
          this.closing--;
          return void request.socket.destroy();
        }
        const status = { answer: 200, unavailable: 503, forbidden: 403 }[this.mode];
        const path = request.url ?? '';
        this.asked.push(path);
        if (status !== 200) return void response.writeHead(status).end('no');
        const { code, body } = this.answer(path, Buffer.concat(parts).toString('utf8'));
        response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    });
    await new Promise<void>(resolve => this.server!.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise(resolve => this.server?.close(resolve));
  }

  private answer(path: string, text: string): { code: number; body: unknown } {
    const artifact = /^\/api\/2\.0\/mlflow-artifacts\/artifacts\/(.*)$/.exec(path)?.[1];
    if (artifact !== undefined) {
      this.artifacts.set(artifact, text);
      return { code: 200, body: {} };
    }
    const run = {
      info: { run_id: 'r1', artifact_uri: 'mlflow-artifacts:/0/r1/artifacts' },
      data: { tags: [...this.tags].map(([key, value]) => ({ key, value })) },
    };
    const call = path.replace(/^\/api\/2\.0\/mlflow\//, '').split('?')[0];
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, never>);
    switch (call) {
      case 'experiments/get-by-name':
        return { code: 404, body: { error_code: 'RESOURCE_DOES_NOT_EXIST' } };
      case 'experiments/create':
        return { code: 200, body: { experiment_id: '7' } };
      case 'runs/search':
        return { code: 200, body: this.created ? { runs: [run] } : {} };
      case 'runs/create':
        this.created = true;
        for (const { key, value } of body.tags as { key: string; value: string }[]) this.tags.set(key, value);
        return { code: 200, body: { run } };
      case 'runs/log-batch':
        this.metrics.push(...((body.metrics as MlflowPeer['metrics'] | undefined) ?? []));
        this.params.push(...((body.params as MlflowPeer['params'] | undefined) ?? []));
        for (const { key, value } of (body.tags as { key: string; value: string }[] | undefined) ?? [])
          this.tags.set(key, value);
        return { code: 200, body: {} };
      case 'runs/update':
        this.states.push(String(body.status));
        return { code: 200, body: {} };
      default:
        return { code: 404, body: { error_code: 'ENDPOINT_NOT_FOUND' } };
    }
  }
}
