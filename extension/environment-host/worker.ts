// The worker thread that runs one environment. It announces each call into environment code in the shared array and answers a batch of
// work items with a batch of results. What the environment prints is sent along as a log and reaches no stream of the process.
import { parentPort, workerData } from 'node:worker_threads';
import { Runner } from './runner';
import { progress, type FromWorker, type ToWorker, type WorkerSetup, type WorkResult } from './work';

/** Characters of output that one batch may log. */
const logLimit = 65_536;

const setup = workerData as WorkerSetup;
const port = parentPort!;
const shared = new Int32Array(setup.progress);
const send = (message: FromWorker) => port.postMessage(message);

let logged = 0;
for (const stream of ['stdout', 'stderr'] as const) {
  process[stream].write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    if (logged < logLimit) {
      const cut = text.slice(0, logLimit - logged);
      send({ stream, text: cut.length < text.length ? `${cut}… (further output of this batch is left out)\n` : cut });
    }
    logged += text.length;
    const done = rest.find(value => typeof value === 'function') as (() => void) | undefined;
    if (done) queueMicrotask(done);
    return true;
  }) as typeof process.stdout.write;
}

const runner = new Runner(setup, action => {
  Atomics.store(shared, progress.action, action);
  Atomics.add(shared, progress.calls, 1);
});

port.on('message', async ({ id, items }: ToWorker) => {
  logged = 0;
  const results: WorkResult[] = [];
  for (let i = 0; i < items.length; i++) {
    Atomics.store(shared, progress.item, i);
    results.push(await runner.run(items[i]));
  }
  Atomics.store(shared, progress.item, -1);
  send({ id, results });
});
