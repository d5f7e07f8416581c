// Entry point of the engine's worker thread: calls arrive as messages, run one at a time in order, and are answered
// with results; generation calls overlap. Started as a process, with a provider and a number of threads, it tests that
// provider and sends the findings (models/self-check.ts).
import { parentPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { UserError } from '../common/user-error';
import { PolicyEngine } from './policy-engine';
import { selfCheck } from './self-check';
import type { Engine } from '../engine/engine';
import { NotFiniteError } from '../engine/optimizer/not-finite';
import type { EngineCall, EngineMessage, EngineStop, EngineWatch } from '../engine/remote-engine';
import { RunStopped } from '../engine/run-stopped';
import type { Provider } from '../engine/session/session';

if (parentPort) serve(parentPort);
else if (process.send) void tryProvider(process.argv[2] as Provider, Number(process.argv[3]));
else throw new Error('engine worker: must be started as a worker thread, or as a child process to try a provider');

function serve(port: MessagePort): void {
  const send = (message: EngineMessage, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);
  const policies = new PolicyEngine(
    sampled => send({ kind: 'tokens', sampled }),
    (done, of) => send({ kind: 'units', done, of }),
  );
  const engine: Engine = policies;
  let last: Promise<unknown> = Promise.resolve();
  /** Running generation calls, which overlap. */
  const joined = new Set<Promise<void>>();
  port.on('message', (message: EngineCall | EngineStop | EngineWatch) => {
    if ('stop' in message) return policies.stop();
    if ('watch' in message) {
      const { watch: row } = message; // not queued: it applies to a running generation
      return policies.watch(
        row === null ? null : { row, onTokens: (ids, logprobs) => send({ kind: 'row', row, ids, logprobs }) },
      );
    }
    const { id, method, args } = message;
    const run = engine[method] as (...args: unknown[]) => Promise<unknown>;
    const answer = async (): Promise<void> => {
      try {
        const result = await run.apply(engine, args);
        send({ kind: 'result', id, result }, copies.has(method) ? buffersOf(result) : []);
      } catch (error) {
        const { message, stack } = error as Error;
        send({
          kind: 'error',
          id,
          message,
          stack,
          user: error instanceof UserError,
          notFinite: error instanceof NotFiniteError,
          stopped: error instanceof RunStopped,
        });
      }
    };
    if (method === 'generate' || method === 'release') {
      const call = last.then(answer);
      joined.add(call);
      void call.then(() => joined.delete(call));
    } else last = Promise.all([last, ...joined]).then(answer);
  });
}

/**
 * Calls whose result is a copy made for the caller. Its buffers are transferred, because another copy would hold a
 * model's moments in memory three times.
 */
const copies: ReadonlySet<keyof Engine> = new Set(['state', 'parameters']);

/** Returns the buffers of all typed arrays in a result. */
function buffersOf(result: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(result)) return [result.buffer as ArrayBuffer];
  if (typeof result !== 'object' || result === null) return [];
  return [...new Set(Object.values(result).flatMap(buffersOf))];
}

async function tryProvider(provider: Provider, threads: number): Promise<void> {
  const checked = await selfCheck(provider, threads);
  process.send!(checked, () => process.exit(0));
}
