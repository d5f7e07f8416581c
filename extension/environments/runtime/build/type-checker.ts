// Client of the type-check thread, which starts with the first check. A check that times out, or crashes the thread,
// returns the reason in `unchecked`; such code is used unchecked.
import { Worker } from 'node:worker_threads';
import { programEnvironment } from '../../../../envs/api/program-environment';
import type { TypeCheckReply, TypeCheckRequest } from './type-check-worker';

/** Time limit of a check in milliseconds. The first check loads TypeScript and its libraries. */
const timeoutMs = 30_000;

export class TypeChecker {
  private worker: Worker | undefined;
  private checks = 0;
  private readonly open = new Map<number, (reply: TypeCheckReply) => void>();

  /** `workerFile` is the bundled type-check-worker.ts, two folders below the installation. */
  constructor(private readonly workerFile: string) {}

  check(source: string): Promise<TypeCheckReply> {
    const id = ++this.checks;
    const worker = (this.worker ??= this.start());
    return new Promise(resolve => {
      const timer = setTimeout(() => this.end(worker, `it took more than ${timeoutMs / 1000} s`), timeoutMs);
      this.open.set(id, reply => {
        clearTimeout(timer);
        resolve(reply);
      });
      worker.postMessage({ id, source } satisfies TypeCheckRequest);
    });
  }

  stop(): void {
    if (this.worker) this.end(this.worker, 'it was stopped');
  }

  private start(): Worker {
    const worker = new Worker(this.workerFile, { env: programEnvironment(), stdin: false, name: 'type-check' });
    worker.unref();
    worker.on('message', (reply: TypeCheckReply) => {
      this.open.get(reply.id)?.(reply);
      this.open.delete(reply.id);
    });
    worker.on('error', ({ message }) => this.end(worker, message));
    return worker;
  }

  private end(worker: Worker, why: string): void {
    if (this.worker !== worker) return;
    this.worker = undefined;
    for (const [id, answer] of this.open) answer({ id, unchecked: why });
    this.open.clear();
    void worker.terminate();
  }
}
