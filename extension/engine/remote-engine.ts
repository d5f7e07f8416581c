// Main-thread proxy of the engine: the same interface, each call sent as a message to the worker thread. The main
// thread stays responsive to pause and stop while a step runs. If the worker dies, all pending calls fail.
import { programEnvironment, variablesFor } from '../../envs/api/program-environment';
import { Worker } from 'node:worker_threads';
import { explainExit } from '../common/process-exit';
import { recordOf } from '../common/records';
import { UserError } from '../common/user-error';
import type { Engine } from './engine';
import { NotFiniteError } from './optimizer/not-finite';
import { RunStopped } from './run-stopped';

export interface EngineCall {
  id: number;
  method: keyof Engine;
  args: unknown[];
}

/** Subscribes to the tokens of a row as they are sampled; null unsubscribes. */
export interface EngineWatch {
  watch: string | null;
}

/** Interrupts running calls and rejects further work, because the run is stopping. */
export interface EngineStop {
  stop: true;
}

export type EngineMessage =
  | { kind: 'result'; id: number; result: unknown }
  | { kind: 'error'; id: number; message: string; stack?: string; user: boolean; notFinite: boolean; stopped: boolean }
  /** Progress of the running generation calls. */
  | { kind: 'tokens'; sampled: number }
  /** Progress of the current call, in units of work. */
  | { kind: 'units'; done: number; of: number }
  /** Tokens of the watched row, in order, from the first token of each turn on. */
  | { kind: 'row'; row: string; ids: number[]; logprobs: number[] };

export interface RemoteEngine extends Engine {
  /** Called with the number of tokens that the running calls have sampled. */
  onTokens: (sampled: number) => void;
  /**
   * Called before each unit of work (such as a packed pass) of a non-generation call; `done` of `of` units are
   * complete.
   */
  onUnits: (done: number, of: number) => void;
  /** Makes rollout, scoring and training calls throw RunStopped; running calls throw between two units of work. */
  interrupt(): void;
  /**
   * Calls `onTokens` with the tokens of one row as they are sampled, replacing any previously watched row; null for
   * none.
   */
  watch(row: string | null, onTokens?: (ids: number[], logprobs: number[]) => void): void;
  stop(): Promise<void>;
}

/** Maximum time a stop waits for running calls: terminating native code aborts the process. */
const stopMs = 9000;

const methods: Record<keyof Engine, true> = {
  load: true,
  generate: true,
  release: true,
  score: true,
  inspect: true,
  crossScore: true,
  update: true,
  analyseGradients: true,
  values: true,
  updateCritic: true,
  trainSupervised: true,
  tryLongest: true,
  remember: true,
  rollBack: true,
  state: true,
  restore: true,
  restoreCritic: true,
  parameters: true,
};

/** Starts the engine's worker thread from its bundle. */
export function startEngine(workerFile: string): RemoteEngine {
  const worker = new Worker(workerFile, {
    env: { ...programEnvironment(variablesFor.devices), ORT_DISABLE_TELEMETRY: '1' },
  });
  const waiting = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
  let count = 0;
  let dead: Error | undefined;
  let watched: { row: string; onTokens: (ids: number[], logprobs: number[]) => void } | undefined;
  /** Called when no call is pending any more. */
  let idle: () => void = () => undefined;
  const fail = (error: Error): void => {
    dead ??= error;
    for (const { reject } of waiting.values()) reject(dead);
    waiting.clear();
    idle();
  };
  worker.on('error', (error: NodeJS.ErrnoException) => fail(outOfMemory(error) ?? error));
  worker.on('exit', code => fail(new Error(`engine: its worker thread ${explainExit(code, null)}`)));
  worker.on('message', (message: EngineMessage) => {
    if (message.kind === 'tokens') return remote.onTokens(message.sampled);
    if (message.kind === 'units') return remote.onUnits(message.done, message.of);
    if (message.kind === 'row') {
      if (watched?.row === message.row) watched.onTokens(message.ids, message.logprobs);
      return;
    }
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if (waiting.size === 0) idle();
    if (message.kind === 'result') return call?.resolve(message.result as never);
    if (message.stopped) return call?.reject(new RunStopped());
    const Kind = message.notFinite ? NotFiniteError : message.user ? UserError : Error;
    const error = new Kind(message.message);
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
  const calls: Engine = recordOf(Object.keys(methods) as (keyof Engine)[], call);
  const remote: RemoteEngine = {
    ...calls,
    onTokens: () => undefined,
    onUnits: () => undefined,
    interrupt: () => worker.postMessage({ stop: true } satisfies EngineStop),
    watch: (row, onTokens = () => undefined) => {
      watched = row === null ? undefined : { row, onTokens };
      worker.postMessage({ watch: row } satisfies EngineWatch);
    },
    stop: async () => {
      if (waiting.size > 0) {
        remote.interrupt();
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<void>(resolve => (timer = setTimeout(resolve, stopMs)));
        await Promise.race([late, new Promise<void>(resolve => (idle = resolve))]);
        clearTimeout(timer);
      }
      await worker.terminate();
    },
  };
  return remote;
}

/** Returns the error for a worker that Node terminated because its JavaScript heap is full; null for other errors. */
const outOfMemory = ({ code }: NodeJS.ErrnoException): UserError | null =>
  code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new UserError(
        "engine: its worker thread filled Node's heap: lower the micro-batch sizes or max_model_len, or start with NODE_OPTIONS=--max-old-space-size=8192",
      )
    : null;
