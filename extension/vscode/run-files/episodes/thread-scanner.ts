// EpisodeScanner in a worker thread, started with the first request. If the thread dies, pending requests fail, and the
// next request starts a new thread.
import { Worker } from 'node:worker_threads';
import { WorkerCalls } from '../../../node/thread-calls';
import type { EpisodeScanner } from './episode-scan';
import type { EpisodeFindings, EpisodeScans } from './episode-worker';

type Found = Parameters<EpisodeScanner['search']>[2];

/**
 * Scans episode files in a thread that executes `file`, the bundled episode-worker.ts. After `dispose`, requests are
 * not answered.
 */
export class ThreadScanner implements EpisodeScanner {
  private thread: { worker: Worker; calls: WorkerCalls<EpisodeScans> } | undefined;
  private readonly searches = new Map<number, Found>();
  private searchCount = 0;

  constructor(private readonly file: string) {}

  index(...[file, from]: Parameters<EpisodeScanner['index']>): ReturnType<EpisodeScanner['index']> {
    return this.calls.call('index', file, from);
  }

  async search(...[files, terms, found]: Parameters<EpisodeScanner['search']>): Promise<boolean> {
    const id = ++this.searchCount;
    this.searches.set(id, found);
    try {
      return await this.calls.call('search', id, files, terms);
    } finally {
      this.searches.delete(id);
    }
  }

  end(): void {
    this.thread?.calls.notify('end');
  }

  dispose(): void {
    void this.thread?.worker.terminate();
  }

  private get calls(): WorkerCalls<EpisodeScans> {
    return (this.thread ??= this.start()).calls;
  }

  private start(): { worker: Worker; calls: WorkerCalls<EpisodeScans> } {
    const worker = new Worker(this.file);
    const findings: EpisodeFindings = { found: (id, rows, share) => this.searches.get(id)?.(rows, share) };
    const calls = new WorkerCalls<EpisodeScans>(worker, findings);
    worker.unref();
    const fail = (error: Error) => {
      if (this.thread?.worker === worker) this.thread = undefined;
      calls.end(error);
    };
    worker.on('error', fail);
    worker.on('exit', () => fail(new Error('The episode reader stopped unexpectedly: try again')));
    return { worker, calls };
  }
}
