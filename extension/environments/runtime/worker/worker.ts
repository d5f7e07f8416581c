// The worker thread that runs one environment. Whenever it calls environment code, it records the call in the shared
// array. It starts items (resets, steps and the like) in order; while an item waits for a promise, the next item may
// start. Printed text is sent as log messages instead of being written to the process's streams.
import { types } from 'node:util';
import { getHeapStatistics } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { OutputBudget } from '../../../node/output-budget';
import { CoverageRecorder } from './coverage-recorder';
import { FaultError, timedOut } from '../threads/fault';
import { Runner, type CallWatch, type Finished } from './runner';
import { catchUnhandled, keepThread, type Owner } from './unhandled-errors';
import {
  noItem,
  progress,
  several,
  type CoverageQuestion,
  type FromWorker,
  type LimitChange,
  type ToWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from '../threads/worker-messages';

// Saved when this file is loaded, because environment code may replace the globals.
const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis;
const now = performance.now.bind(performance);
const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/** Maximum characters of output that are logged per second. */
const logLimit = 65_536;

/** Maximum milliseconds between two checks of the time limit of a waiting call. */
const longestLookMs = 250;

/** Milliseconds between updates of the thread's memory in the shared array. */
const memoryMs = 200;

const setup = workerData as WorkerSetup;
const port = parentPort!;
const shared = new Int32Array(setup.progress);
const send = (message: FromWorker) => port.postMessage(message);

const budget = new OutputBudget(logLimit);
function print(stream: 'stdout' | 'stderr', printed: string): void {
  const text = budget.take(printed);
  if (text !== '') send({ stream, text });
}
for (const stream of ['stdout', 'stderr'] as const) {
  process[stream].write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    print(stream, typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    const done = rest.find(value => typeof value === 'function') as (() => void) | undefined;
    if (done) queueMicrotask(done);
    return true;
  };
}

/** Index of the current action of each item that waits for a promise, by item number. */
const waiting = new Map<number, number>();
const queue: { number: number; item: WorkItem }[] = [];
let { limitMs, overlap }: Pick<ToWorker, 'limitMs' | 'overlap'> = { limitMs: 0, overlap: 1 };
let done: { number: number; item: WorkItem; result: WorkResult; owner: Owner }[] = [];
let working = false;
let wake: () => void = () => undefined;
let beat: NodeJS.Timeout | undefined;
let answering: NodeJS.Immediate | undefined;

setInterval(() => Atomics.store(shared, progress.kibibytes, heldKibibytes()), memoryMs).unref();

const recorder = setup.cover ? new CoverageRecorder(setup.filename) : undefined;
const runner = new Runner(setup);
const listenAgain = catchUnhandled(text => print('stderr', text));
keepThread();

port.on('message', (message: ToWorker | LimitChange | CoverageQuestion) => {
  if (message === 'coverage') return send({ covered: recorder?.take() ?? [] });
  ({ limitMs } = message);
  if (!('items' in message)) return;
  ({ overlap } = message);
  listenAgain();
  message.items.forEach((item, i) => queue.push({ number: message.first + i, item }));
  if (!working) void work();
});

/** Runs the queued items in order. While an item waits, the next item starts. */
async function work(): Promise<void> {
  working = true;
  while (queue.length > 0) {
    for (let next = queue.shift(); next; next = queue.shift()) {
      while (waiting.size >= overlap) {
        answer();
        await new Promise<void>(resolve => (wake = resolve));
      }
      if (overlap === 1) await settled();
      const begins = begun(next.number, next.item);
      if (begins) await begins;
      if (waiting.size > 0) await turn(); // lets settled promises resume their items
    }
    await settled(); // lets stray promises report their errors
  }
  working = false;
  answer();
}

/**
 * Runs the pending microtasks and events. If `overlap` is 1, the shared array continues to name the last item as the
 * current item until these microtasks and events have run.
 */
async function settled(): Promise<void> {
  await turn();
  idle();
}

/**
 * Starts an item. The returned promise resolves when the item has finished or first waits for a promise. Returns
 * undefined if the item has already finished or already waits.
 */
function begun(number: number, item: WorkItem): Promise<void> | undefined {
  let action = -1;
  let resolve: () => void = () => undefined;
  const watch: CallWatch = {
    enters(newest) {
      action = newest;
      Atomics.store(shared, progress.item, number);
      Atomics.store(shared, progress.action, action);
      Atomics.add(shared, progress.calls, 1);
    },
    async waits(promise, owner) {
      waiting.set(number, action);
      beat ??= setInterval(() => Atomics.add(shared, progress.calls, 1), Math.min(Math.max(limitMs / 16, 2), 100));
      idle();
      resolve();
      try {
        return await within(promise, owner);
      } finally {
        waiting.delete(number);
        if (waiting.size === 0) beat = void clearInterval(beat);
        if (overlap > 1) idle();
        wake();
      }
    },
  };
  const finish = (finished: Finished) => {
    done.push({ number, item, ...finished });
    if (overlap > 1) idle();
    resolve();
    if (!working) answering ??= setImmediate(answer); // batches all results of this event loop turn
  };
  const running = runner.run(item, watch);
  if (!types.isPromise(running)) return void finish(running);
  void running.then(finish);
  return waiting.has(number) ? undefined : new Promise<void>(settled => (resolve = settled));
}

/**
 * Settles like the promise, or rejects with a fault at the time limit. Before the rejection, pending events are
 * processed once more, because code of other episodes may have blocked the event loop. The time during which the event
 * loop is blocked, for example by a debugger, hardly counts. If the limit changes, the time restarts. The owner's
 * `interrupt` also rejects the returned promise.
 */
function within<T>(promise: PromiseLike<T>, owner: Owner): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let [limit, waited, last, planned] = [limitMs, 0, now(), 0];
    let timer: NodeJS.Timeout;
    const wait = () => {
      planned = Math.max(1, Math.min(longestLookMs, limit - waited));
      timer = setTimeout(look, planned);
    };
    const look = () => {
      const time = now();
      waited = limit === limitMs ? waited + Math.min(time - last, 2 * planned) : 0;
      [limit, last] = [limitMs, time];
      if (waited < limit) wait();
      else void turn().then(() => fail(new FaultError(timedOut(limit))));
    };
    const settle = () => {
      clearTimeout(timer);
      owner.interrupt = undefined;
    };
    const fail = (error: unknown) => (settle(), reject(error));
    owner.interrupt = fail;
    promise.then(value => (settle(), resolve(value)), fail);
    wait();
  });
}

/**
 * Records the number of the waiting item in the shared array, or the fact that several items or no items wait. Called
 * when no environment code is running.
 */
function idle(): void {
  const [first] = waiting;
  Atomics.store(shared, progress.action, first?.[1] ?? -1);
  Atomics.store(shared, progress.item, waiting.size > 1 ? several : (first?.[0] ?? noItem));
}

/** Sends the results that have not been sent. */
function answer(): void {
  answering = undefined;
  if (done.length > 0) send({ results: done.map(({ number, result }) => [number, result]) });
  for (const each of done) runner.sent(each.item, each);
  done = [];
}

/** Returns the memory of this thread in KiB: its heap, its buffers and its native allocations. */
function heldKibibytes(): number {
  const { total_heap_size, external_memory, malloced_memory } = getHeapStatistics();
  return Math.ceil((total_heap_size + external_memory + malloced_memory) / 1024);
}
