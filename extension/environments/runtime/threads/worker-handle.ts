// One worker thread from start to end: sends items, receives results and printed text, and ends the thread if a call
// exceeds its time limit. Nothing from the worker is trusted, because environment code may reach its port. Messages are
// plain: through vscode-jsonrpc an item sent alone takes 24 µs of processor time in place of 19 µs.
import { getHeapStatistics } from 'node:v8';
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { tagVariable } from '../../../protocol/environment-link';
import { largest } from '../../../protocol/environment-bounds';
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
  type ToWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from './work';

export interface WorkerHandleOptions {
  /** The worker's data, without the buffer of its progress. */
  setup: Omit<WorkerSetup, 'progress'>;
  /** Path of the bundled worker. */
  workerFile: string;
  /** Memory limit of the process in bytes, and therefore of this thread's heap. */
  mostBytes: number;
  /** Time limit of a call in milliseconds. */
  limitMs(): number;
  onLog(stream: 'stdout' | 'stderr', text: string): void;
}

export interface WorkerOwner {
  /** The worker has ended or is being ended; called before its pending items are given up. */
  ended(): void;
  /** The worker exited while no items were pending. */
  exited(fault: Fault): void;
  /** The worker sent a message that is not its own. */
  offended(): void;
  /** The worker is busy although a call that had timed out is over for its caller. */
  spins(): void;
}

/** Why a worker ended before its items were done. */
export interface WorkerEnding {
  blame: Blame;
  cause: Fault;
}

/** Items sent to the worker, numbered from `first`. */
interface Batch {
  first: number;
  items: readonly WorkItem[];
  /** Indices of the finished items. */
  done: Set<number>;
  onResult(item: WorkItem, result: WorkResult): void;
  /** Called when all items are done, or the worker has ended. */
  finish(ending?: WorkerEnding): void;
}

/** Maximum number of items whose promises are awaited concurrently. */
const overlap = 64;

/** Characters per second forwarded from output that bypasses the worker's own limit. */
const bypassedOutputPerSecond = 16_384;

/** Item numbers wrap to 0 after this. */
const lastNumber = 2 ** 30;

export class WorkerHandle {
  private readonly worker: Worker;
  private readonly shared: Int32Array;
  private readonly calls: CallWatch;
  private readonly spin: SpinWatch;
  private readonly batches = new Set<Batch>();
  private number = 0;
  /** Pending requests for coverage counts. */
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
      if (!this.alive) return;
      const remedy = 'throw an error instead of ending the process';
      const fault = thrown ?? { kind: 'died', what: `ended its thread with exit code ${code}`, remedy };
      const idle = this.idle;
      this.end(fault);
      if (idle) owner.exited({ ...fault, action: -1 });
    });
    worker.on('message', (message: unknown) => {
      if (!this.alive) return; // messages sent before it was ended may still arrive
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

  /** When the current call was first seen, or undefined if no item is pending. */
  get busySince(): number | undefined {
    return this.idle ? undefined : this.calls.since;
  }

  /** Memory of the worker in bytes, as last reported. The worker measures between calls and while it waits. */
  get bytes(): number {
    return Math.max(0, Atomics.load(this.shared, progress.kibibytes)) * 1024;
  }

  /**
   * Sends items, at most one per episode; resolves when all have their results, or with the ending of the worker.
   *
   * @param alone whether each item is awaited completely before the next starts, so that the item at fault is known
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

  /** Returns the worker's coverage counts since the last call. Empty if it ends before it answers. */
  covered(): Promise<CoveredRange[]> {
    if (this.asking.length === 0) this.worker.postMessage('coverage' satisfies CoverageQuestion);
    return new Promise(resolve => this.asking.push(resolve));
  }

  /**
   * Ends the worker and all its pending batches, without waiting for it, since native code may block it for long.
   *
   * @param collect whether its memory is needed at once
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

/** Whom the number of the current item blames, as seen by a batch. */
function blameOf(number: number, { first, items }: Batch): Blame {
  if (number === several) return 'unknown';
  if (number === noItem) return 'nobody';
  const item = items.at(number - first);
  return number >= first && item && item.do !== 'load' ? { episode: item.episode } : 'other';
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
