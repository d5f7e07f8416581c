// Entry point of the engine's worker thread. Calls arrive as messages and run one at a time in order; only generation
// calls overlap. If this file is started as a process, it tests a provider instead and sends the findings
// (models/self-check.ts). The process then has two or three arguments: the provider, a number of threads and, for a model
// that reads pictures, a PictureUse as JSON.
import { parentPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { serveCalls, transferred } from '../node/thread-calls';
import { PolicyEngine } from './policy-engine';
import type { PictureUse } from './pictured-check';
import { selfCheck } from './self-check';
import type { Engine } from '../engine/engine';
import { engineErrors, engineOf, type EngineCalls, type EngineReports } from '../engine/engine-calls';
import type { Provider } from '../engine/session/session';

if (parentPort) serve(parentPort);
else if (process.send) void tryProvider(...(process.argv.slice(2) as [Provider, string, string?]));
else throw new Error('engine worker: must be started as a worker thread, or as a child process that tests a provider');

function serve(port: MessagePort): void {
  const policies = new PolicyEngine(
    sampled => report('tokens', sampled),
    (done, of) => report('units', done, of),
  );
  policies.onRows = rows => report('rows', rows);
  const engine: Engine = policies;
  let last: Promise<unknown> = Promise.resolve();
  /** Generation calls in progress; they overlap. */
  const joined = new Set<Promise<unknown>>();
  const queued =
    (method: keyof Engine) =>
    (...args: unknown[]): Promise<never> => {
      const run = engine[method] as (...args: unknown[]) => Promise<unknown>;
      const work = async (): Promise<unknown> => {
        const result = await run.apply(engine, args);
        return copies.has(method) ? transferred(result as object) : result;
      };
      const overlaps = method === 'generate' || method === 'release';
      const result = (overlaps ? last : Promise.all([last, ...joined])).then(work);
      const over = result.catch(() => undefined);
      if (overlaps) {
        joined.add(over);
        void over.then(() => joined.delete(over));
      } else last = over;
      return result as Promise<never>;
    };
  const calls: EngineCalls = {
    ...engineOf(queued),
    // `interrupt` and `watch` bypass the queue, because they act on calls that are already running.
    interrupt: () => policies.stop(),
    watch: row =>
      policies.watch(row === null ? null : { row, onTokens: (ids, logprobs) => report('row', row, ids, logprobs) }),
  };
  const report = serveCalls<EngineReports>(port, calls, engineErrors);
}

/**
 * Calls that return a copy of data. The buffers of the result are transferred, because cloning them would keep a
 * model's moments in memory three times.
 */
const copies: ReadonlySet<keyof Engine> = new Set(['state', 'parameters']);

async function tryProvider(provider: Provider, threads: string, use?: string): Promise<void> {
  const shown = use === undefined ? undefined : (JSON.parse(use) as PictureUse);
  const checked = await selfCheck(provider, Number(threads), { shown });
  process.send!(checked, () => process.exit(0));
}
