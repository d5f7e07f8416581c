// Entry of the engine's worker thread: calls arrive as messages, one at a time in order, and leave as results.
import { parentPort } from 'node:worker_threads';
import { UserError } from '../../protocol/user-error';
import { PolicyEngine } from '../models/policy-engine';
import type { Engine } from './engine';
import type { EngineCall, EngineMessage } from './remote-engine';

const port = parentPort;
if (!port) throw new Error('engine worker: must be started as a worker thread');
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
