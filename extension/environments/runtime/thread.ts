// One loaded environment and the supervised worker thread that runs it. A call that times out or a worker that exits
// fails only its own episode: a new worker is started and the other live episodes are rebuilt from (seed, member,
// actions), invisibly to the trainer. Batches, and calls that return promises, overlap; items of one episode run in
// order.
import type { EventLoopUtilization } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { tagVariable, type EnvironmentFailure } from '../../protocol/environment-link';
import { largest } from '../../protocol/environment-bounds';
import { isRecord } from '../../common/json';
import { appendAll } from '../../common/lists';
import { gibibytes } from '../../common/numbers';
import { OutputBudget } from '../../node/output-budget';
import { KeyedQueue } from '../../common/keyed-queue';
import type { Bundle } from './build/build';
import { failureOf, type FailureContext } from './worker/failure';
import { threadEnded } from './worker/collect-garbage';
import { faultOf, timedOut } from './fault';
import {
  noItem,
  progress,
  several,
  type CoverageQuestion,
  type CoveredRange,
  type Description,
  type Fault,
  type FromWorker,
  type ToWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from './work';

export interface ThreadOptions {
  tag: string;
  source: string;
  bundle: Bundle;
  config: Record<string, unknown>;
  /** Whether to count how often each part of the code runs. */
  cover: boolean;
  /** Memory limit of the process in bytes, and therefore of this thread's heap. */
  mostBytes: number;
  /** Path of the bundled worker. */
  workerFile: string;
  /** Time limit of one call into environment code, in milliseconds. */
  timeoutMs: number;
  onLog(stream: 'stdout' | 'stderr', text: string): void;
}

/** Data to rebuild an episode, and its newest observation. */
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
/** Called with the result of the item at `index`. */
export type ThreadListener = (index: number, result: ThreadResult) => void;

/** A fault that ended the worker. */
interface Ending {
  fault: Fault;
  /** Number of the item at fault, or `nobody` or `several`. */
  item: number;
}

/** Items sent to the worker. */
interface Batch {
  first: number;
  size: number;
  /** Indices of the finished items. */
  done: Set<number>;
  onResult(index: number, result: WorkResult): void;
  /** Called when all items are done, or the worker has ended. */
  finish(ending?: Ending): void;
}

const stoppedFault = { kind: 'died', what: 'was stopped', remedy: 'start the run again' } as const;

/** Milliseconds beyond the time limit for which the worker may run no environment code, at start or between items. */
const startAllowance = 10_000;

/** How often a worker may end without a current item before the batch fails. */
const maxUnattributedEndings = 2;

/** Attempts to reload code that has loaded before, until it counts as broken. */
const reloads = 2;

/** Maximum number of items whose promises are awaited concurrently. */
const overlap = 64;

/** Characters per second forwarded from output that bypasses the worker's own limit. */
const bypassedOutputPerSecond = 16_384;

/**
 * After a call has timed out: idle milliseconds over which the thread is measured, and the share of them that it may be
 * busy.
 */
const spinMs = 1000;
const spinShare = 0.05;

const foreignMessage = {
  kind: 'bad_value',
  what: 'posted its own message from its thread',
  remedy: 'do not use the parentPort of node:worker_threads: it belongs to the process that runs the environment',
} as const;

/** Item numbers wrap to 0 after this. */
const lastNumber = 2 ** 30;

export class EnvironmentThread {
  private worker: Worker | undefined;
  private shared = new Int32Array(new SharedArrayBuffer(progress.slots * Int32Array.BYTES_PER_ELEMENT)).fill(noItem);
  private number = 0;
  private readonly batches = new Set<Batch>();
  private watch: NodeJS.Timeout | undefined;
  /** When the current call was first seen (`performance.now()`). */
  private since = 0;
  private starting: Promise<Fault | undefined> | undefined;
  /**
   * Work during which the worker ended while several items waited. It is retried one item at a time to identify the
   * item at fault.
   */
  private readonly retrySerially = new Set<readonly unknown[]>();
  /** Queues by episode. */
  private readonly queue = new KeyedQueue();
  private readonly records = new Map<string, EpisodeRecord>();
  /** Pending requests for coverage counts. */
  private readonly asking: ((ranges: CoveredRange[]) => void)[] = [];
  private loaded: Description | undefined;
  private stopped = false;
  /**
   * Timer that measures a thread after a timed-out call, and the utilization at the start of the measured idle period.
   */
  private spinning: NodeJS.Timeout | undefined;
  private spin: { worker?: Worker; from?: EventLoopUtilization } = {};

  constructor(private readonly options: ThreadOptions) {}

  get tag(): string {
    return this.options.tag;
  }

  get version(): string {
    return this.options.bundle.version;
  }

  get files(): string[] {
    return this.options.bundle.files;
  }

  get bundle(): Bundle {
    return this.options.bundle;
  }

  get code(): string {
    return this.options.bundle.code;
  }

  /**
   * Number of live episodes, including failed ones until they are closed and those being started. At 0 the thread is
   * unused.
   */
  get episodes(): number {
    return Math.max(this.records.size, this.queue.size);
  }

  set timeoutMs(limit: number) {
    this.options.timeoutMs = limit;
  }

  /** Starts the worker and evaluates the environment. A thread that fails to load cannot be used again. */
  async load(): Promise<{ description: Description } | { failure: EnvironmentFailure }> {
    const fault = await this.ready([]);
    if (!fault) return { description: this.loaded! };
    this.stop();
    return { failure: failureOf(fault, this.context()) };
  }

  /**
   * Runs the items, at most one per episode, each after the pending items of its episode. Returns results in the order
   * of the items. `onResult` receives each result as soon as it is there.
   */
  async run(items: readonly ThreadItem[], onResult?: ThreadListener): Promise<ThreadResult[]> {
    const episodes = items.map(({ episode }) => episode);
    const results = await this.queue.acquire(episodes, releaseEpisode =>
      this.perform(items, (i, result) => {
        releaseEpisode(episodes[i]);
        onResult?.(i, result);
      }),
    );
    this.retrySerially.delete(items);
    return results;
  }

  get covers(): boolean {
    return this.options.cover;
  }

  /** Returns the worker's counts since the last call. Empty if there is no worker or it ends before it answers. */
  covered(): Promise<CoveredRange[]> {
    if (!this.worker || !this.options.cover) return Promise.resolve([]);
    if (this.asking.length === 0) this.worker.postMessage('coverage' satisfies CoverageQuestion);
    return new Promise(resolve => this.asking.push(resolve));
  }

  /** When the current call was first seen, or undefined if no item is running. */
  get busySince(): number | undefined {
    return this.batches.size > 0 ? this.since : undefined;
  }

  /** Memory of the worker in bytes, as last reported. The worker measures between calls and while it waits. */
  get bytes(): number {
    return this.worker ? Math.max(0, Atomics.load(this.shared, progress.kibibytes)) * 1024 : 0;
  }

  /**
   * Ends the worker because its process exceeds `limit` bytes, and frees its memory at once. If no call is running, all
   * its episodes fail, because rebuilding them would allocate the same memory again.
   */
  endForMemory(limit: number): void {
    const what = `exceeded the memory limit for environments of ${gibibytes(limit)}`;
    const remedy = 'reduce memory use, or raise workbench.max_environment_memory_gb';
    this.endForOffence({ kind: 'died', what, remedy }, true);
  }

  /** Ends the worker for misbehaviour. If no call is running that could be at fault, all its episodes fail. */
  private endForOffence(fault: Omit<Fault, 'action'>, collect = false): void {
    const idle = this.batches.size === 0;
    this.end(fault, collect);
    if (!idle) return;
    const failure = failureOf({ ...fault, action: -1 }, this.context());
    for (const record of this.records.values()) record.failure ??= failure;
    this.options.onLog('stderr', `${failure.message}\n`);
  }

  /** Ends the worker without waiting for it, since native code may block it for long. */
  stop(): void {
    this.stopped = true;
    this.end(stoppedFault);
  }

  private async perform(items: readonly ThreadItem[], onResult: ThreadListener): Promise<ThreadResult[]> {
    if (!this.worker && !this.starting && items.every(item => item.do === 'close')) {
      for (const { episode } of items) this.records.delete(episode); // no worker holds them
      return items.map(() => ({}));
    }
    const results: (ThreadResult | undefined)[] = items.map(() => undefined);
    const settled = (i: number, result: ThreadResult) => {
      results[i] = result;
      onResult(i, result);
    };
    for (let unattributed = 0; ;) {
      const left = items.filter((_, i) => !results[i]); // finished items are rebuilt with the other episodes
      const fault = left.length > 0 ? await this.ready(left) : undefined;
      items.forEach((item, i) => {
        if (results[i]) return;
        const failure =
          item.do === 'reset' || item.do === 'close' ? undefined : this.records.get(item.episode)?.failure;
        if (failure) settled(i, this.failed(item, failure));
        else if (fault) settled(i, this.failed(item, failureOf(fault, this.context(item))));
      });
      const open = items.map((_, i) => i).filter(i => results[i] === undefined);
      if (open.length === 0) return results as ThreadResult[];
      const { first, ending } = await this.attempt(
        open.map(i => items[i]),
        (k, result) => settled(open[k], this.settle(items[open[k]], result)),
      );
      if (!ending) return results as ThreadResult[];
      if (ending.item === several || ending.item === noItem) this.retrySerially.add(items);
      const failing =
        ending.item === noItem && ++unattributed > maxUnattributedEndings ? open : [open[ending.item - first]];
      for (const i of failing) {
        if (i === undefined || results[i]) continue;
        settled(i, this.failed(items[i], failureOf(ending.fault, this.context(items[i]))));
      }
    }
  }

  /** Updates the episode records with the result of an item. */
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
      if (record)
        appendAll(
          record.actions,
          (result.outcomes ?? []).map(({ action }) => action),
        );
      if (record && failure) record.failure = failure;
      if (record) result.observation = record.observation = result.observation ?? record.observation;
    }
    return failure ? { ...result, failure } : result;
  }

  /** Returns the result of a failed item. The episode stays failed until it is reset. */
  private failed(item: ThreadItem, failure: EnvironmentFailure): ThreadResult {
    if (item.do === 'close') {
      this.records.delete(item.episode);
      return {};
    }
    const held = this.records.get(item.episode);
    const { seed, member, mode } = item.do === 'reset' ? item : (held ?? { seed: 0, member: 0, mode: 'train' });
    const observation = item.do === 'reset' ? '' : (held?.observation ?? '');
    const actions = item.do === 'reset' ? [] : (held?.actions ?? []);
    // A failed solver does not fail the episode; it is rebuilt unchanged.
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

  /** Ensures a running worker that holds all live episodes. Returns a fault only if the environment no longer loads. */
  private async ready(items: readonly ThreadItem[]): Promise<Fault | undefined> {
    if (this.worker && !this.starting) return undefined;
    return (this.starting ??= this.restart(items).finally(() => (this.starting = undefined)));
  }

  private async restart(items: readonly ThreadItem[]): Promise<Fault | undefined> {
    const leaving = new Set(items.filter(item => item.do === 'reset' || item.do === 'close').map(item => item.episode));
    let tries = this.loaded ? reloads : 1;
    while (!this.worker) {
      const fault = await this.start();
      if (fault && --tries > 0 && !this.stopped) continue; // it has loaded before, so the failure may be transient
      if (fault) return fault;
      const live = [...this.records].filter(([episode, record]) => !record.failure && !leaving.has(episode));
      const replays = live.map(([episode, { seed, member, mode, actions }]): WorkItem => {
        return { do: 'replay', episode, seed, member, mode, actions };
      });
      if (replays.length === 0) return undefined;
      const fail = (i: number, found: Fault) => (live[i][1].failure = failureOf(found, this.context(replays[i])));
      const { first, ending } = await this.attempt(replays, (i, { fault }) => fault && fail(i, fault));
      if (ending?.item === noItem && this.retrySerially.has(items)) return ending.fault;
      if (ending?.item === several || ending?.item === noItem) this.retrySerially.add(items);
      else if (ending) fail(ending.item - first, ending.fault);
    }
    return undefined;
  }

  private async start(): Promise<Fault | undefined> {
    if (this.stopped) return { ...stoppedFault, action: -1 };
    const { tag, source, bundle, config, cover, workerFile, onLog } = this.options;
    const buffer = new SharedArrayBuffer(progress.slots * Int32Array.BYTES_PER_ELEMENT);
    this.shared = new Int32Array(buffer).fill(-1);
    const setup: WorkerSetup = {
      tag,
      source,
      filename: bundle.filename,
      code: bundle.code,
      config,
      cover,
      progress: buffer,
    };
    const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
    const worker = new Worker(workerFile, {
      workerData: setup,
      env: { ...env, [tagVariable]: tag },
      resourceLimits: heapLimit(this.options.mostBytes),
      stdout: true,
      stderr: true,
      stdin: false,
      name: tag,
    });
    // The worker limits its own output; this limits output that bypasses it.
    const printed = new OutputBudget(bypassedOutputPerSecond);
    for (const stream of ['stdout', 'stderr'] as const)
      worker[stream].on('data', (chunk: Buffer) => {
        const text = printed.take(chunk.toString('utf8'));
        if (text !== '') onLog(stream, text);
      });
    let thrown: Omit<Fault, 'action'> | undefined;
    worker.on('error', (error: NodeJS.ErrnoException) => {
      thrown = faultOf(error);
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        thrown = { kind: 'died', what: 'ran out of memory', remedy: 'reduce memory use' };
    });
    worker.on('exit', code => {
      if (this.worker !== worker) return;
      this.worker = undefined;
      for (const answer of this.asking.splice(0)) answer([]);
      const remedy = 'throw an error instead of ending the process';
      const fault = thrown ?? { kind: 'died', what: `ended its thread with exit code ${code}`, remedy };
      if (this.batches.size > 0) this.end(fault);
      else onLog('stderr', `${failureOf({ ...fault, action: -1 }, this.context()).message}\n`);
    });
    worker.on('message', (message: unknown) => {
      if (this.worker !== worker) return; // messages sent before it was ended may still arrive
      if (!isFromWorker(message) || !this.accept(message)) this.endForOffence(foreignMessage);
    });
    this.worker = worker;
    let loaded: WorkResult = {};
    const { ending } = await this.attempt([{ do: 'load' }], (_, result) => (loaded = result));
    if (ending) return ending.fault;
    this.loaded = loaded.description ?? this.loaded;
    if (loaded.fault) this.drop();
    return loaded.fault;
  }

  /** Handles a message of the worker. Returns false if the message was not expected. */
  private accept(message: FromWorker): boolean {
    if ('stream' in message) this.options.onLog(message.stream, message.text);
    else if ('covered' in message) {
      if (this.asking.length === 0) return false;
      for (const answer of this.asking.splice(0)) answer(message.covered);
    } else return message.results.every(([number, result]) => this.receive(number, result));
    return true;
  }

  /** Returns false if no batch waits for the result. */
  private receive(number: number, result: WorkResult): boolean {
    for (const batch of this.batches) {
      const index = number - batch.first;
      if (index < 0 || index >= batch.size || batch.done.has(index)) continue;
      batch.done.add(index);
      if (result.fault?.kind === 'timed_out') this.watchSpin();
      batch.onResult(index, result);
      if (batch.done.size < batch.size) return true;
      this.batches.delete(batch);
      batch.finish();
      return true;
    }
    return false;
  }

  /**
   * A call has timed out, but its code may still run. If it keeps the thread busy while no item is pending, the worker
   * is ended, and later rebuilt with its episodes. Time with pending items is not measured, so that other episodes'
   * calls do not count.
   */
  private watchSpin(): void {
    this.spinning ??= setInterval(() => {
      const { worker } = this;
      if (!worker) return this.unwatchSpin();
      if (this.batches.size > 0) return;
      const now = worker.performance.eventLoopUtilization();
      const { from } = this.spin;
      if (!from || this.spin.worker !== worker) return void (this.spin = { worker, from: now });
      const { active, idle } = worker.performance.eventLoopUtilization(now, from);
      if (active + idle < spinMs) return;
      if (active / (active + idle) > spinShare) {
        const what = 'kept its thread busy after a call had timed out: the thread is restarted';
        this.options.onLog('stderr', `environment ${this.tag} (${this.options.source}) ${what}\n`);
        this.drop();
      }
      this.unwatchSpin();
    }, spinMs / 2);
    this.spinning.unref();
  }

  private unwatchSpin(): void {
    clearInterval(this.spinning);
    this.spinning = undefined;
  }

  /** Sends items to the running worker and supervises it. If `ending` is absent, all items are done. */
  private attempt(
    items: readonly WorkItem[],
    onResult: Batch['onResult'],
  ): Promise<{ first: number; ending?: Ending }> {
    const { length: size } = items;
    const first = this.number + size > lastNumber ? 0 : this.number;
    this.number = first + size;
    return new Promise(resolve => {
      this.batches.add({ first, size, done: new Set(), onResult, finish: ending => resolve({ first, ending }) });
      this.watch ??= this.watchWorker();
      this.spin = {};
      const message: ToWorker = {
        first,
        items: [...items],
        limitMs: this.limitMs,
        overlap: this.retrySerially.size > 0 ? 1 : overlap,
      };
      this.worker?.postMessage(message);
    });
  }

  /** Time limit of a call in milliseconds. */
  private get limitMs(): number {
    return Math.max(this.options.timeoutMs, this.loaded?.patience_ms ?? 0);
  }

  /** Starts a timer that ends the worker when it makes no progress. */
  private watchWorker(): NodeJS.Timeout {
    const { shared, limitMs } = this;
    let calls = -1;
    let item = -1;
    this.since = performance.now();
    let limit = limitMs;
    const look = () => {
      const now = performance.now();
      if (limit !== this.limitMs) [limit, this.since] = [this.limitMs, now]; // a debugger was attached or detached
      const newestCalls = Atomics.load(shared, progress.calls);
      const newestItem = Atomics.load(shared, progress.item);
      if (newestCalls !== calls || newestItem !== item) [calls, item, this.since] = [newestCalls, newestItem, now];
      else if (this.batches.size === 0) this.unwatch();
      else if (now - this.since >= this.limitMs + (item === noItem ? startAllowance : 0))
        this.end(timedOut(this.limitMs));
    };
    return setInterval(look, Math.min(Math.max(limitMs / 8, 5), 250));
  }

  private unwatch(): void {
    clearInterval(this.watch);
    this.watch = undefined;
  }

  /** Ends the worker and all its pending batches. */
  private end(fault: Omit<Fault, 'action'>, collect = false): void {
    this.drop(collect);
    const item = Atomics.load(this.shared, progress.item);
    const ending = { fault: { ...fault, action: Atomics.load(this.shared, progress.action) }, item };
    const batches = [...this.batches];
    this.batches.clear();
    for (const batch of batches) batch.finish(ending);
  }

  private drop(collect = false): void {
    const { worker } = this;
    this.worker = undefined;
    this.unwatch();
    for (const answer of this.asking.splice(0)) answer([]);
    void worker?.terminate().then(() => threadEnded(collect));
  }
}

/** Limits a thread's heap to the limit of the process, if that is below V8's default. */
function heapLimit(mostBytes: number): ResourceLimits | undefined {
  if (mostBytes >= getHeapStatistics().heap_size_limit) return undefined;
  return { maxOldGenerationSizeMb: Math.max(64, Math.floor(mostBytes / 2 ** 20)) };
}

/** Whether a message has the form of a worker message. Environment code can also reach the port. */
function isFromWorker(message: unknown): message is FromWorker {
  if (!isRecord(message)) return false;
  const { stream, text, covered, results } = message;
  if (stream === 'stdout' || stream === 'stderr') return typeof text === 'string' && text.length <= largest;
  if (covered !== undefined) return Array.isArray(covered);
  const isResult = (entry: unknown) => Array.isArray(entry) && Number.isInteger(entry[0]) && isRecord(entry[1]);
  return Array.isArray(results) && results.every(isResult);
}
