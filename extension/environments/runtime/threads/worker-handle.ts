// Manages one worker thread from start to end: sends items to the worker, receives its results and printed text, and
// ends the thread if a call exceeds its time limit. Does not trust messages from the worker, because environment code
// may reach its port. No RPC library is used, because with vscode-jsonrpc, sending one item takes 24 µs of processor
// time instead of 19 µs.
import { getHeapStatistics } from 'node:v8';
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { tagVariable } from '../../../protocol/environment-link';
import { largest } from '../../../protocol/environment-message-bounds';
import { isRecord } from '../../../common/json';
import { OutputBudget } from '../../../node/output-budget';
import type { Blame } from '../../supervision/supervisor';
import { CallWatch } from './call-watch';
import { threadEnded } from '../worker/collect-garbage';
import { faultOf, timedOut } from './fault';
import { SpinWatch } from './spin-watch';
import {
  noItem,
  progress,
  several,
  type CoverageQuestion,
  type CoveredRange,
  type Fault,
  type FromWorker,
  type LimitChange,
  type ToWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from './worker-messages';

export interface WorkerHandleOptions {
  /** The `workerData` of the thread, except for the shared buffer. */
  setup: Omit<WorkerSetup, 'progress'>;
  /** Path of the bundle of worker.ts. */
  workerFile: string;
  /** Memory limit of the process in bytes; also limits the heap of this thread. */
  mostBytes: number;
  /** Returns the time limit of a call in milliseconds. */
  limitMs(): number;
  onLog(stream: 'stdout' | 'stderr', text: string): void;
}

export interface WorkerOwner {
  /** Called when the worker has ended or is being ended, before its pending batches are resolved. */
  ended(): void;
  /** Called when the worker exited while no items were pending. */
  exited(fault: Fault): void;
  /** Called when the worker sent an invalid or unexpected message. */
  offended(): void;
  /** Called when no items are pending but the worker is busy, because the code of a timed-out call continues to run. */
  spins(): void;
}

/** Why a worker ended before all its items had results. */
export interface WorkerEnding {
  blame: Blame;
  cause: Fault;
}

/** Items that were sent together; their numbers are consecutive and start at `first`. */
interface Batch {
  first: number;
  items: readonly WorkItem[];
  /** Indices of the finished items. */
  done: Set<number>;
  onResult(item: WorkItem, result: WorkResult): void;
  /** Called without an argument when all items have results, or with the reason if the worker ended earlier. */
  finish(ending?: WorkerEnding): void;
}

/** Maximum number of items that wait for promises concurrently. */
const overlap = 64;

/**
 * Some output bypasses the worker's own limit. At most this many characters of such output are forwarded per second.
 */
const bypassedOutputPerSecond = 16_384;

/** Highest item number. After this number, the numbering restarts at 0. */
const lastNumber = 2 ** 30;

export class WorkerHandle {
  private readonly worker: Worker;
  private readonly shared: Int32Array;
  private readonly calls: CallWatch;
  private readonly spin: SpinWatch;
  private readonly batches = new Set<Batch>();
  private number = 0;
  /** Callbacks of pending requests for coverage counts. */
  private readonly asking: ((ranges: CoveredRange[]) => void)[] = [];
  private alive = true;

  constructor(
    private readonly options: WorkerHandleOptions,
    private readonly owner: WorkerOwner,
  ) {
    const { setup, workerFile, mostBytes, limitMs, onLog } = options;
    const buffer = new SharedArrayBuffer(progress.slots * Int32Array.BYTES_PER_ELEMENT);
    this.shared = new Int32Array(buffer).fill(-1);
    const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
    const worker = new Worker(workerFile, {
      workerData: { ...setup, progress: buffer } satisfies WorkerSetup,
      env: { ...env, [tagVariable]: setup.tag },
      resourceLimits: heapLimit(mostBytes),
      stdout: true,
      stderr: true,
      stdin: false,
      name: setup.tag,
    });
    this.worker = worker;
    // Limits output that bypasses the worker's own limit.
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
      if (!this.alive) return;
      const remedy = 'throw an error instead of ending the process';
      const fault = thrown ?? { kind: 'died', what: `ended its thread with exit code ${code}`, remedy };
      const idle = this.idle;
      this.end(fault);
      if (idle) owner.exited({ ...fault, action: -1 });
    });
    worker.on('message', (message: unknown) => {
      if (!this.alive) return; // messages sent before the end may still arrive
      if (!isFromWorker(message) || !this.accept(message)) owner.offended();
    });
    this.calls = new CallWatch(this.shared, limitMs, {
      pending: () => !this.idle,
      exceeded: () => this.end(timedOut(limitMs())),
    });
    this.spin = new SpinWatch(worker, () => !this.idle, owner.spins);
  }

  /** Whether no items are pending. */
  get idle(): boolean {
    return this.batches.size === 0;
  }

  /** Time at which the current call was first observed; undefined if no items are pending. */
  get busySince(): number | undefined {
    return this.idle ? undefined : this.calls.since;
  }

  /** Memory of the worker in bytes, from its last report. The worker reports between calls and while it waits. */
  get bytes(): number {
    return Math.max(0, Atomics.load(this.shared, progress.kibibytes)) * 1024;
  }

  /**
   * Sends items, at most one per episode. Resolves when all items have results, or with the reason if the worker ends
   * earlier.
   *
   * @param alone whether to await each item completely before the next item starts, so that the item at fault is known
   */
  send(
    items: readonly WorkItem[],
    alone: boolean,
    onResult: (item: WorkItem, result: WorkResult) => void,
  ): Promise<WorkerEnding | undefined> {
    const { length: size } = items;
    const first = this.number + size > lastNumber ? 0 : this.number;
    this.number = first + size;
    return new Promise(resolve => {
      this.batches.add({ first, items, done: new Set(), onResult, finish: resolve });
      this.calls.start();
      this.spin.restart();
      const limitMs = this.options.limitMs();
      this.worker.postMessage({ first, items: [...items], limitMs, overlap: alone ? 1 : overlap } satisfies ToWorker);
    });
  }

  /** Applies the current time limit also to calls that wait for promises. Must be called when the limit has changed. */
  limitChanged(): void {
    this.worker.postMessage({ limitMs: this.options.limitMs() } satisfies LimitChange);
  }

  /** Returns the worker's coverage counts since the last call; empty if the worker ends before its reply. */
  covered(): Promise<CoveredRange[]> {
    if (this.asking.length === 0) this.worker.postMessage('coverage' satisfies CoverageQuestion);
    return new Promise(resolve => this.asking.push(resolve));
  }

  /**
   * Ends the worker and resolves its pending batches. Does not wait for the worker's exit, because native code may
   * delay the exit for long.
   *
   * @param collect whether to free the worker's memory at once by a garbage collection
   */
  end(fault: Omit<Fault, 'action'>, collect = false): void {
    if (!this.alive) return;
    this.alive = false;
    this.owner.ended();
    this.calls.stop();
    this.spin.stop();
    for (const answer of this.asking.splice(0)) answer([]);
    void this.worker.terminate().then(() => threadEnded(collect));
    const item = Atomics.load(this.shared, progress.item);
    const cause = { ...fault, action: Atomics.load(this.shared, progress.action) };
    const batches = [...this.batches];
    this.batches.clear();
    for (const batch of batches) batch.finish({ blame: blameOf(item, batch), cause });
  }

  /** Handles a message of the worker. Returns false if no such message was expected. */
  private accept(message: FromWorker): boolean {
    if ('stream' in message) this.options.onLog(message.stream, message.text);
    else if ('covered' in message) {
      if (this.asking.length === 0) return false;
      for (const answer of this.asking.splice(0)) answer(message.covered);
    } else return message.results.every(([number, result]) => this.receive(number, result));
    return true;
  }

  /** Records the result of an item. Returns false if no pending item has this number. */
  private receive(number: number, result: WorkResult): boolean {
    for (const batch of this.batches) {
      const index = number - batch.first;
      if (index < 0 || index >= batch.items.length || batch.done.has(index)) continue;
      batch.done.add(index);
      if (result.fault?.kind === 'timed_out') this.spin.start();
      batch.onResult(batch.items[index], result);
      if (batch.done.size < batch.items.length) return true;
      this.batches.delete(batch);
      batch.finish();
      return true;
    }
    return false;
  }
}

/**
 * Returns who is to blame for the worker's end: an episode of the given batch, another batch, nobody, or `unknown` if
 * this cannot be determined.
 * @param number value of the slot `item` in the shared array when the worker ended
 */
function blameOf(number: number, { first, items }: Batch): Blame {
  if (number === several) return 'unknown';
  if (number === noItem) return 'nobody';
  const item = items.at(number - first);
  return number >= first && item && item.do !== 'load' ? { episode: item.episode } : 'other';
}

/** Returns the limit of a thread's heap: the memory limit of the process, or undefined if V8's default is lower. */
function heapLimit(mostBytes: number): ResourceLimits | undefined {
  if (mostBytes >= getHeapStatistics().heap_size_limit) return undefined;
  return { maxOldGenerationSizeMb: Math.max(64, Math.floor(mostBytes / 2 ** 20)) };
}

/**
 * Whether a message has the format of a worker's message. Environment code may send other messages through the port.
 */
function isFromWorker(message: unknown): message is FromWorker {
  if (!isRecord(message)) return false;
  const { stream, text, covered, results } = message;
  if (stream === 'stdout' || stream === 'stderr') return typeof text === 'string' && text.length <= largest;
  if (covered !== undefined) return Array.isArray(covered);
  const isResult = (entry: unknown) => Array.isArray(entry) && Number.isInteger(entry[0]) && isRecord(entry[1]);
  return Array.isArray(results) && results.every(isResult);
}
