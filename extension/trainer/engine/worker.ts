// Entry of the engine's worker thread: calls arrive as messages, one at a time in order, and leave as results. Started as a process,
// with a provider and a number of threads, it tries that provider and sends what it found (models/self-check.ts).
import { parentPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { UserError } from '../../protocol/user-error';
import { PolicyEngine } from '../models/policy-engine';
import { selfCheck } from '../models/self-check';
import type { Engine } from './engine';
import type { EngineCall, EngineMessage } from './remote-engine';
import type { Provider } from './session';

if (parentPort) serve(parentPort);
else if (process.send) void tryProvider(process.argv[2] as Provider, Number(process.argv[3]));
else throw new Error('engine worker: must be started as a worker thread, or as a child process to try a provider');

function serve(port: MessagePort): void {
  const send = (message: EngineMessage): void => port.postMessage(message);
  const engine: Engine = new PolicyEngine(sampled => send({ kind: 'tokens', sampled }));
  let last = Promise.resolve();
  port.on('message', ({ id, method, args }: EngineCall) => {
    const run = engine[method] as (...args: unknown[]) => Promise<unknown>;
    last = last.then(async () => {
      try {
        send({ kind: 'result', id, result: await run.apply(engine, args) });
      } catch (error) {
        const { message, stack } = error as Error;
        send({ kind: 'error', id, message, stack, user: error instanceof UserError });
      }
    });
  });
}

async function tryProvider(provider: Provider, threads: number): Promise<void> {
  const checked = await selfCheck(provider, threads);
  process.send!(checked, () => process.exit(0));
}
