// The worker thread that runs one environment. It announces each call into environment code in the shared array. Work items are begun in
// their order; one whose call returned a promise lets the next begin. What the environment prints is sent along as a log and reaches no
// stream of the process.
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { OutputBudget } from '../protocol/output-budget';
import { CoverageRecorder } from './coverage-recorder';
import { FaultError, timedOut } from './fault';
import { Runner, type CallWatch } from './runner';
import {
  nobody,
  progress,
  several,
  type CoverageQuestion,
  type FromWorker,
  type ToWorker,
  type WorkerSetup,
  type WorkItem,
  type WorkResult,
} from './work';

/** Characters of output that are logged in a second. */
const logLimit = 65_536;

/** Milliseconds between two notes of the memory that the thread holds. */
const memoryMs = 200;

const setup = workerData as WorkerSetup;
const port = parentPort!;
const shared = new Int32Array(setup.progress);
const send = (message: FromWorker) => port.postMessage(message);

const budget = new OutputBudget(logLimit);
for (const stream of ['stdout', 'stderr'] as const) {
  process[stream].write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
    const text = budget.take(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    if (text !== '') send({ stream, text });
    const done = rest.find(value => typeof value === 'function') as (() => void) | undefined;
    if (done) queueMicrotask(done);
    return true;
  }) as typeof process.stdout.write;
}

/** Items that wait for a promise, with their actions. */
const waiting = new Map<number, number>();
const queue: { number: number; item: WorkItem }[] = [];
let { limitMs, overlap }: Pick<ToWorker, 'limitMs' | 'overlap'> = { limitMs: 0, overlap: 1 };
let done: [number, WorkResult][] = [];
let working = false;
let wake: () => void = () => undefined;
let beat: NodeJS.Timeout | undefined;
let answering: NodeJS.Immediate | undefined;

setInterval(() => Atomics.store(shared, progress.kibibytes, heldKibibytes()), memoryMs).unref();

const recorder = setup.cover ? new CoverageRecorder(setup.filename) : undefined;
const runner = new Runner(setup);

port.on('message', (message: ToWorker | CoverageQuestion) => {
  if (message === 'coverage') return send({ covered: recorder?.take() ?? [] });
  ({ limitMs, overlap } = message);
  message.items.forEach((item, i) => queue.push({ number: message.first + i, item }));
  if (!working) void work();
});

/** Does what is queued, in order; an item that waits lets the next one begin. */
async function work(): Promise<void> {
  working = true;
  for (let next = queue.shift(); next; next = queue.shift()) {
    while (waiting.size >= overlap) {
      answer();
      await new Promise<void>(resolve => (wake = resolve));
    }
    await begun(next.number, next.item);
    if (waiting.size > 0) await turn(); // what is waited for may have come
  }
  working = false;
  answer();
}

/** Begins an item; resolves when it is done or waits for the first time. */
function begun(number: number, item: WorkItem): Promise<void> {
  return new Promise(resolve => {
    let action = -1;
    const watch: CallWatch = {
      enters(newest) {
        action = newest;
        Atomics.store(shared, progress.item, number);
        Atomics.store(shared, progress.action, action);
        Atomics.add(shared, progress.calls, 1);
      },
      async waits(promise) {
        waiting.set(number, action);
        beat ??= setInterval(() => Atomics.add(shared, progress.calls, 1), Math.min(Math.max(limitMs / 16, 2), 100));
        idle();
        resolve();
        try {
          return await within(promise);
        } finally {
          waiting.delete(number);
          if (waiting.size === 0) beat = void clearInterval(beat);
          idle();
          wake();
        }
      },
    };
    void runner.run(item, watch).then(result => {
      done.push([number, result]);
      idle();
      resolve();
      if (!working) answering ??= setImmediate(answer); // with what else is done by then
    });
  });
}

/** As the promise, or a fault after the limit: not before what came in meanwhile is looked at, since others' code may have held it up. */
function within<T>(promise: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const ms = limitMs;
    const timer = setTimeout(async () => {
      await turn();
      reject(new FaultError(timedOut(ms)));
    }, ms);
    promise.then(
      value => (clearTimeout(timer), resolve(value)),
      (error: unknown) => (clearTimeout(timer), reject(error as Error)),
    );
  });
}

/** Says for whom the worker waits now that no environment code runs. */
function idle(): void {
  const [first] = waiting;
  Atomics.store(shared, progress.action, first?.[1] ?? -1);
  Atomics.store(shared, progress.item, waiting.size > 1 ? several : (first?.[0] ?? nobody));
}

/** Sends what is done. */
function answer(): void {
  answering = undefined;
  if (done.length > 0) send({ results: done });
  done = [];
}

/** KiB of this thread's heap, and of buffers and native memory that belong to it. */
function heldKibibytes(): number {
  const { total_heap_size, external_memory, malloced_memory } = getHeapStatistics();
  return Math.ceil((total_heap_size + external_memory + malloced_memory) / 1024);
}
