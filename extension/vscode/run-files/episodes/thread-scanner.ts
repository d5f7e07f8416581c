// EpisodeScanner in a worker thread, started with the first request. If the thread dies, pending requests fail, and the
// next request starts a new thread.
import { Worker } from 'node:worker_threads';
import type { EpisodeScanner } from './episode-scan';
import type { WorkerAnswer, WorkerAsk } from './episode-worker';

interface Waiting {
  found?: (rows: Int32Array, share: number) => void;
  resolve(value: never): void;
  reject(error: Error): void;
}

/** `file` is the bundled worker. After `dispose`, requests are not answered. */
export class ThreadScanner implements EpisodeScanner {
  private worker: Worker | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;

  constructor(private readonly file: string) {}

  index(...[file, from]: Parameters<EpisodeScanner['index']>): ReturnType<EpisodeScanner['index']> {
    return this.ask(id => ({ id, index: { file, from } }));
  }

  search(...[files, terms, found]: Parameters<EpisodeScanner['search']>): Promise<boolean> {
    return this.ask(id => ({ id, search: { files, terms } }), found);
  }

  end(): void {
    this.worker?.postMessage({ id: ++this.lastId, end: true } satisfies WorkerAsk);
  }

  dispose(): void {
    void this.worker?.terminate();
  }

  private ask<T>(question: (id: number) => WorkerAsk, found?: Waiting['found']): Promise<T> {
    const id = ++this.lastId;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { found, resolve, reject });
      (this.worker ??= this.start()).postMessage(question(id));
    });
  }

  private start(): Worker {
    const worker = new Worker(this.file);
    worker.unref();
    worker.on('message', (answer: WorkerAnswer) => this.settle(answer));
    const fail = (error: Error) => {
      if (this.worker === worker) this.worker = undefined;
      for (const each of this.waiting.values()) each.reject(error);
      this.waiting.clear();
    };
    worker.on('error', fail);
    worker.on('exit', () => fail(new Error('The episode reader stopped unexpectedly: try again')));
    return worker;
  }

  private settle(answer: WorkerAnswer): void {
    const waiting = this.waiting.get(answer.id);
    if (!waiting) return;
    if ('found' in answer) return waiting.found?.(answer.found, answer.share);
    this.waiting.delete(answer.id);
    if ('error' in answer) waiting.reject(new Error(answer.error));
    else waiting.resolve(('line' in answer ? answer.line : answer.done) as never);
  }
}
