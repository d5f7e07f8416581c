// Client of the type-check thread, which is started by the first check. If a check times out or the thread crashes, the
// reply contains the reason in `unchecked`. The code may then be used without a check.
import { Worker } from 'node:worker_threads';
import { programEnvironment } from '../../../../envs/api/program-environment';
import { WorkerCalls } from '../../../node/thread-calls';
import type { TypeCheckReply, TypeChecks } from './type-check-worker';

/** Time limit of a check in milliseconds; sufficient for the first check, which loads TypeScript and its libraries. */
const timeoutMs = 30_000;

interface Thread {
  worker: Worker;
  calls: WorkerCalls<TypeChecks>;
}

export class TypeChecker {
  private thread: Thread | undefined;

  /**
   * @param workerFile path of the bundle of type-check-worker.ts; the folder of the installation is two levels above
   * this file
   */
  constructor(private readonly workerFile: string) {}

  async check(source: string): Promise<TypeCheckReply> {
    const thread = (this.thread ??= this.start());
    const timer = setTimeout(() => this.end(thread, `the check took more than ${timeoutMs / 1000} s`), timeoutMs);
    try {
      return await thread.calls.call('check', source);
    } catch (error) {
      return { unchecked: (error as Error).message };
    } finally {
      clearTimeout(timer);
    }
  }

  stop(): void {
    if (this.thread) this.end(this.thread, 'the check was stopped');
  }

  private start(): Thread {
    const worker = new Worker(this.workerFile, { env: programEnvironment(), stdin: false, name: 'type-check' });
    const thread = { worker, calls: new WorkerCalls<TypeChecks>(worker) };
    worker.unref();
    worker.on('error', ({ message }) => this.end(thread, message));
    return thread;
  }

  private end(thread: Thread, why: string): void {
    if (this.thread === thread) this.thread = undefined;
    thread.calls.end(new Error(why));
    void thread.worker.terminate();
  }
}
