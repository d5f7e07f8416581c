// Main-thread proxy of the engine. The proxy has the engine's interface and passes each call to the worker thread
// (engine-calls.ts). The main thread can therefore handle pause and stop requests while a step runs. If the worker
// exits, all pending calls fail.
import { programEnvironment, variablesFor } from '../../envs/api/program-environment';
import { Worker } from 'node:worker_threads';
import { explainExit } from '../common/process-exit';
import { WorkerCalls } from '../node/thread-calls';
import { UserError } from '../common/user-error';
import type { Engine, EngineState, LocalState } from './engine';
import { engineErrors, engineOf, type EngineCalls, type EngineReports } from './engine-calls';
import type { PublishedVersions } from './published-versions';

export interface RemoteEngine<State extends EngineState = EngineState> extends Engine<State> {
  /** Called with the number of tokens that the running calls have sampled. */
  onTokens: (sampled: number) => void;
  /** Called when rows of the running `generate` calls have sampled their last token. */
  onRows: (rows: readonly string[]) => void;
  /**
   * Called before each work unit (such as a packed pass) of every call except `generate`. `done` is the number of
   * completed units, and `of` is the number of all units.
   */
  onUnits: (done: number, of: number) => void;
  /**
   * Versions of the weights with which tokens can be sampled while the current weights are trained. Null if the engine
   * keeps no versions, and before `load`.
   */
  readonly versions: PublishedVersions | null;
  /** Makes rollout, scoring and training calls throw RunStopped; a running call throws at its next work unit. */
  interrupt(): void;
  /**
   * Calls `onTokens` with the tokens of one row as they are sampled. Replaces the previously watched row; null watches
   * no row.
   */
  watch(row: string | null, onTokens?: (ids: number[], logprobs: number[]) => void): void;
  /**
   * Deletes saved states, given by the paths that `state` returned. Absent if the engine saves nothing outside of the
   * run folder.
   */
  discard?(states: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Maximum milliseconds that `stop` waits for running calls before it terminates the worker. `stop` waits because
 * terminating a worker that is executing native code aborts the process.
 */
const stopMs = 9000;

/** Starts the engine's worker thread from its bundle. */
export function startEngine(workerFile: string): RemoteEngine<LocalState> {
  const worker = new Worker(workerFile, {
    env: { ...programEnvironment(variablesFor.devices), ORT_DISABLE_TELEMETRY: '1' },
  });
  let watched: { row: string; onTokens: (ids: number[], logprobs: number[]) => void } | undefined;
  const reports: EngineReports = {
    tokens: sampled => remote.onTokens(sampled),
    rows: rows => remote.onRows(rows),
    units: (done, of) => remote.onUnits(done, of),
    row: (row, ids, logprobs) => {
      if (watched?.row === row) watched.onTokens(ids, logprobs);
    },
  };
  const calls = new WorkerCalls<EngineCalls>(worker, reports, engineErrors);
  worker.on('error', (error: NodeJS.ErrnoException) => calls.end(outOfMemory(error) ?? error));
  worker.on('exit', code => calls.end(new Error(`engine: its worker thread ${explainExit(code, null)}`)));
  const pending = new Set<Promise<unknown>>();
  const call =
    (method: keyof Engine) =>
    (...args: unknown[]): Promise<never> => {
      const result = calls.call(method, ...(args as never)) as Promise<never>;
      pending.add(result);
      return result.finally(() => pending.delete(result));
    };
  const remote: RemoteEngine<LocalState> = {
    ...engineOf(call),
    onTokens: () => undefined,
    onRows: () => undefined,
    onUnits: () => undefined,
    versions: null,
    interrupt: () => calls.notify('interrupt'),
    watch: (row, onTokens = () => undefined) => {
      watched = row === null ? undefined : { row, onTokens };
      calls.notify('watch', row);
    },
    stop: async () => {
      if (pending.size > 0) {
        remote.interrupt();
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<void>(resolve => (timer = setTimeout(resolve, stopMs)));
        const idle = async (): Promise<void> => {
          while (pending.size > 0) await Promise.allSettled(pending);
        };
        await Promise.race([late, idle()]);
        clearTimeout(timer);
      }
      await worker.terminate();
    },
  };
  return remote;
}

/**
 * Returns the UserError for a worker that Node terminated because its JavaScript heap was full; null for other errors.
 */
const outOfMemory = ({ code }: NodeJS.ErrnoException): UserError | null =>
  code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new UserError(
        'engine: the JavaScript heap of its worker thread is full: lower the micro-batch sizes or max_model_len, or start with NODE_OPTIONS=--max-old-space-size=8192',
      )
    : null;
