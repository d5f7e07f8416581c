// The engine as seen from the trainer's main thread: the same interface, each call a message to the worker thread. The main
// thread stays free to answer pause and stop while a step runs. A worker that dies fails every call that waits.
import { Worker } from 'node:worker_threads';
import { explainExit } from '../../protocol/process-exit';
import { UserError } from '../../protocol/user-error';
import type { Engine } from './engine';

export interface EngineCall {
  id: number;
  method: keyof Engine;
  args: unknown[];
}

export type EngineMessage =
  | { kind: 'result'; id: number; result: unknown }
  | { kind: 'error'; id: number; message: string; stack?: string; user: boolean }
  /** Progress of the generation in hand. */
  | { kind: 'tokens'; sampled: number };

export interface RemoteEngine extends Engine {
  /** Called with the number of tokens that the generation in hand has sampled. */
  onTokens: (sampled: number) => void;
  stop(): Promise<void>;
}

const methods: Record<keyof Engine, true> = {
  load: true,
  generate: true,
  release: true,
  score: true,
  crossScore: true,
  update: true,
  analyseGradients: true,
  values: true,
  updateCritic: true,
  imitate: true,
  tryLongest: true,
  state: true,
  restore: true,
  parameters: true,
};

/** Starts the engine's worker thread from its bundle. */
export function startEngine(workerFile: string): RemoteEngine {
  const worker = new Worker(workerFile, { env: { ...process.env, ORT_DISABLE_TELEMETRY: '1' } });
  const waiting = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
  let count = 0;
  let dead: Error | undefined;
  const fail = (error: Error): void => {
    dead ??= error;
    for (const { reject } of waiting.values()) reject(dead);
    waiting.clear();
  };
  worker.on('error', (error: NodeJS.ErrnoException) => fail(outOfMemory(error) ?? error));
  worker.on('exit', code => fail(new Error(`engine: its worker thread ${explainExit(code, null)}`)));
  worker.on('message', (message: EngineMessage) => {
    if (message.kind === 'tokens') return remote.onTokens(message.sampled);
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === 'result') return call?.resolve(message.result as never);
    const error = message.user ? new UserError(message.message) : new Error(message.message);
    if (!message.user && message.stack) error.stack = message.stack;
    call?.reject(error);
  });
  const call =
    (method: keyof Engine) =>
    (...args: unknown[]): Promise<never> =>
      new Promise((resolve, reject) => {
        if (dead) return reject(dead);
        const id = count++;
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, method, args } satisfies EngineCall);
      });
  const calls = Object.fromEntries(
    Object.keys(methods).map(method => [method, call(method as keyof Engine)]),
  ) as unknown as Engine;
  const remote: RemoteEngine = {
    ...calls,
    onTokens: () => undefined,
    stop: async () => {
      await worker.terminate();
    },
  };
  return remote;
}

/** The sentence for a worker that Node ended because its JavaScript heap is full; null for other errors. */
const outOfMemory = ({ code }: NodeJS.ErrnoException): UserError | null =>
  code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new UserError(
        "engine: its worker thread filled Node's heap: lower the micro-batch sizes or max_model_len, or start with NODE_OPTIONS=--max-old-space-size=8192",
      )
    : null;
