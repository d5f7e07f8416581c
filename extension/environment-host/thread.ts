// One loaded environment and the worker thread that runs it, supervised: a call that does not return in time or a worker that ends takes
// its own episode down and no other. A new worker is started and the other live episodes are rebuilt from (seed, member, actions),
// which the trainer never notices. Items of one thread are done one batch at a time.
import { Worker } from 'node:worker_threads';
import type { EnvironmentFailure } from '../protocol/environment-link';
import type { Bundle } from './build';
import { failureOf, type FailureContext } from './failure';
import { faultOf } from './fault';
import {
  progress,
  type Description,
  type Fault,
  type FromWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from './work';

export interface ThreadOptions {
  tag: string;
  source: string;
  bundle: Bundle;
  config: Record<string, unknown>;
  /** Path of the worker's bundle. */
  workerFile: string;
  /** Limit of one call into environment code, in milliseconds. */
  timeoutMs: number;
  onLog(stream: 'stdout' | 'stderr', text: string): void;
}

/** What is needed to rebuild an episode, and its newest observation. */
interface EpisodeRecord {
  seed: number;
  member: number;
  mode: 'train' | 'val';
  actions: (number | string)[];
  observation: string;
  failure?: EnvironmentFailure;
}

export type ThreadItem = Exclude<WorkItem, { do: 'load' | 'replay' }>;
export interface ThreadResult extends Omit<WorkResult, 'fault'> {
  failure?: EnvironmentFailure;
}

/** A batch's end: its results, or the fault that took the worker down and the item it struck (−1: none in hand). */
type Attempt = { results: WorkResult[] } | { fault: Fault; item: number };

const stoppedFault = { kind: 'died', what: 'was stopped', remedy: 'start the run again' } as const;

/** Milliseconds beyond the limit that a worker may take while no environment code is announced: to start, or between items. */
const startAllowance = 10_000;

/** Times a worker may end without an item in hand before the batch is given up. */
const strayEndings = 2;

export class EnvironmentThread {
  private worker: Worker | undefined;
  private shared = new Int32Array(new SharedArrayBuffer(0));
  private batches = 0;
  private queue: Promise<unknown> = Promise.resolve();
  private readonly records = new Map<string, EpisodeRecord>();
  private loaded: Description | undefined;
  private stopped = false;
  /** The batch that the worker has in hand. */
  private batch: { id: number; finish(attempt: Attempt): void; end(fault: Omit<Fault, 'action'>): void } | undefined;

  constructor(private readonly options: ThreadOptions) {}

  get version(): string {
    return this.options.bundle.version;
  }

  get files(): string[] {
    return this.options.bundle.files;
  }

  get code(): string {
    return this.options.bundle.code;
  }

  /** Live episodes, failed ones included until they are closed. */
  get episodes(): number {
    return this.records.size;
  }

  set timeoutMs(limit: number) {
    this.options.timeoutMs = limit;
  }

  /** Starts the worker and evaluates the environment; a thread that fails is of no further use. */
  async load(): Promise<{ description: Description } | { failure: EnvironmentFailure }> {
    return this.inTurn(async () => {
      const fault = await this.start();
      if (!fault) return { description: this.loaded! };
      this.stop();
      return { failure: failureOf(fault, this.context()) };
    });
  }

  /** Does the items in order; results in the order of the items. */
  run(items: ThreadItem[]): Promise<ThreadResult[]> {
    return this.inTurn(() => this.perform(items));
  }

  /** Ends the worker without waiting for it: code that blocks outside JavaScript may hold it for long. */
  stop(): void {
    this.stopped = true;
    if (this.batch) this.batch.end(stoppedFault);
    else this.drop();
  }

  private inTurn<T>(job: () => Promise<T>): Promise<T> {
    const turn = this.queue.then(job);
    this.queue = turn.catch(() => undefined);
    return turn;
  }

  private async perform(items: ThreadItem[]): Promise<ThreadResult[]> {
    if (!this.worker && items.every(item => item.do === 'close')) {
      for (const { episode } of items) this.records.delete(episode); // nothing holds them any more
      return items.map(() => ({}));
    }
    const results: (ThreadResult | undefined)[] = items.map(() => undefined);
    for (let strays = 0; ;) {
      const fault = await this.ready(items);
      items.forEach((item, i) => {
        const failure =
          item.do === 'reset' || item.do === 'close' ? undefined : this.records.get(item.episode)?.failure;
        if (failure) results[i] ??= this.failed(item, failure);
        else if (fault) results[i] ??= this.failed(item, failureOf(fault, this.context(item)));
      });
      const open = items.map((_, i) => i).filter(i => results[i] === undefined);
      if (open.length === 0) break;
      const attempt = await this.attempt(open.map(i => items[i]));
      if ('results' in attempt) {
        attempt.results.forEach((result, k) => (results[open[k]] = this.settle(items[open[k]], result)));
        break;
      }
      const struck = attempt.item >= 0 ? [open[attempt.item]] : ++strays > strayEndings ? open : [];
      for (const i of struck) results[i] = this.failed(items[i], failureOf(attempt.fault, this.context(items[i])));
    }
    return results as ThreadResult[];
  }

  /** Keeps the records up to what an item did. */
  private settle(item: ThreadItem, { fault, ...result }: WorkResult): ThreadResult {
    if (item.do === 'close') {
      this.records.delete(item.episode);
      if (fault) this.options.onLog('stderr', `${failureOf(fault, this.context(item)).message}\n`);
      return result;
    }
    const failure = fault && failureOf(fault, this.context(item));
    if (item.do === 'reset') {
      const { seed, member, mode } = item;
      this.records.set(item.episode, {
        seed,
        member,
        mode,
        actions: [],
        observation: result.observation ?? '',
        failure,
      });
    } else if (item.do === 'step') {
      const record = this.records.get(item.episode);
      record?.actions.push(...(result.outcomes ?? []).map(({ action }) => action));
      if (record && failure) record.failure = failure;
      if (record) result.observation = record.observation = result.observation ?? record.observation;
    }
    return failure ? { ...result, failure } : result;
  }

  /** The result of an item that was struck down; the episode stays failed until it is reset. */
  private failed(item: ThreadItem, failure: EnvironmentFailure): ThreadResult {
    if (item.do === 'close') {
      this.records.delete(item.episode);
      return {};
    }
    const held = this.records.get(item.episode);
    const { seed, member, mode } = item.do === 'reset' ? item : (held ?? { seed: 0, member: 0, mode: 'train' });
    const observation = item.do === 'reset' ? '' : (held?.observation ?? '');
    const actions = item.do === 'reset' ? [] : (held?.actions ?? []);
    // A solver that fails spoils no episode: it is rebuilt as it was.
    if (item.do !== 'solve') this.records.set(item.episode, { seed, member, mode, actions, observation, failure });
    return { observation, outcomes: [], failure };
  }

  private context(item?: WorkItem): FailureContext {
    const { tag, source, bundle, timeoutMs } = this.options;
    const held = item && item.do !== 'load' ? this.records.get(item.episode) : undefined;
    const episode =
      item?.do === 'reset' || item?.do === 'replay' ? { seed: item.seed, member: item.member, actions: [] } : held;
    return { tag, source, bundle, timeoutMs, names: this.loaded?.actions, item, episode };
  }

  /** A running worker that holds all live episodes; a fault only when the environment does not load any more. */
  private async ready(items: readonly ThreadItem[]): Promise<Fault | undefined> {
    const leaving = new Set(items.filter(item => item.do === 'reset' || item.do === 'close').map(item => item.episode));
    while (!this.worker) {
      const fault = await this.start();
      if (fault) return fault;
      const live = [...this.records].filter(([episode, record]) => !record.failure && !leaving.has(episode));
      const replays = live.map(([episode, { seed, member, mode, actions }]): WorkItem => {
        return { do: 'replay', episode, seed, member, mode, actions };
      });
      if (replays.length === 0) continue;
      const attempt = await this.attempt(replays);
      const faults = 'results' in attempt ? attempt.results.map(({ fault }) => fault) : [];
      if (!('results' in attempt)) {
        if (attempt.item < 0) return attempt.fault;
        faults[attempt.item] = attempt.fault;
      }
      faults.forEach((found, i) => {
        if (found) live[i][1].failure = failureOf(found, this.context(replays[i]));
      });
    }
    return undefined;
  }

  private async start(): Promise<Fault | undefined> {
    if (this.stopped) return { ...stoppedFault, action: -1 };
    const { tag, source, bundle, config, workerFile, onLog } = this.options;
    const buffer = new SharedArrayBuffer(progress.slots * Int32Array.BYTES_PER_ELEMENT);
    this.shared = new Int32Array(buffer).fill(-1);
    const setup: WorkerSetup = { tag, source, filename: bundle.filename, code: bundle.code, config, progress: buffer };
    const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
    const worker = new Worker(workerFile, {
      workerData: setup,
      env,
      stdout: true,
      stderr: true,
      stdin: false,
      name: tag,
    });
    worker.stdout.on('data', (chunk: Buffer) => onLog('stdout', chunk.toString('utf8')));
    worker.stderr.on('data', (chunk: Buffer) => onLog('stderr', chunk.toString('utf8')));
    let thrown: Omit<Fault, 'action'> | undefined;
    worker.on('error', (error: NodeJS.ErrnoException) => {
      thrown = faultOf(error);
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        thrown = { kind: 'died', what: 'ran out of memory', remedy: 'keep less in memory' };
    });
    worker.on('exit', code => {
      if (this.worker !== worker) return;
      this.worker = undefined;
      const remedy = 'throw an error instead of ending the process';
      const fault = thrown ?? { kind: 'died', what: `ended its thread with exit code ${code}`, remedy };
      if (this.batch) this.batch.end(fault);
      else onLog('stderr', `${failureOf({ ...fault, action: -1 }, this.context()).message}\n`);
    });
    worker.on('message', (message: FromWorker) => {
      if ('stream' in message) onLog(message.stream, message.text);
      else if (message.id === this.batch?.id) this.batch.finish({ results: message.results });
    });
    this.worker = worker;
    const attempt = await this.attempt([{ do: 'load' }]);
    if (!('results' in attempt)) return attempt.fault;
    const [{ description, fault }] = attempt.results;
    this.loaded = description ?? this.loaded;
    if (fault) this.drop();
    return fault;
  }

  /** Hands a batch to the running worker and watches over it. */
  private attempt(items: WorkItem[]): Promise<Attempt> {
    const { shared } = this;
    const limitMs = Math.max(this.options.timeoutMs, this.loaded?.patience_ms ?? 0);
    const id = ++this.batches;
    return new Promise(resolve => {
      let calls = -1;
      let item = -1;
      let since = performance.now();
      const look = () => {
        const now = performance.now();
        const newestCalls = Atomics.load(shared, progress.calls);
        const newestItem = Atomics.load(shared, progress.item);
        if (newestCalls !== calls || newestItem !== item) [calls, item, since] = [newestCalls, newestItem, now];
        else if (now - since >= limitMs + (item < 0 ? startAllowance : 0)) {
          const what = `did not return within ${limitMs} ms`;
          end({ kind: 'timed_out', what, remedy: 'make it return, or allow it more time' });
        }
      };
      const watch = setInterval(look, Math.min(Math.max(limitMs / 8, 5), 250));
      const finish = (attempt: Attempt) => {
        clearInterval(watch);
        this.batch = undefined;
        resolve(attempt);
      };
      const end = (fault: Omit<Fault, 'action'>) => {
        this.drop();
        const action = Atomics.load(shared, progress.action);
        finish({ fault: { ...fault, action }, item: Atomics.load(shared, progress.item) });
      };
      this.batch = { id, finish, end };
      this.worker?.postMessage({ id, items });
    });
  }

  private drop(): void {
    const { worker } = this;
    this.worker = undefined;
    void worker?.terminate();
  }
}
