// Functions that the engine's worker thread (models/engine-worker.ts) offers to the main thread (remote-engine.ts), and
// functions that the main thread offers to the worker. This file also contains the codec that preserves error classes
// across threads.
import { recordOf } from '../common/records';
import type { ErrorCodec } from '../node/thread-calls';
import { UserError } from '../common/user-error';
import type { Engine, LocalState } from './engine';
import { NotFiniteError } from './optimizer/not-finite';
import { RunStopped } from './run-stopped';

/** Functions of the worker, called by the main thread. */
export interface EngineCalls extends Engine<LocalState> {
  /** Interrupts running calls and rejects further work, because the run is stopping. */
  interrupt(): void;
  /** Subscribes to the sampled tokens of a row, replacing the previous subscription; null unsubscribes. */
  watch(row: string | null): void;
}

/** Functions of the main thread, called by the worker; they return no result. */
export interface EngineReports {
  /** Reports the number of tokens sampled by the running generation calls. */
  tokens(sampled: number): void;
  /** Reports which rows of the running generation calls have sampled their last token. */
  rows(rows: readonly string[]): void;
  /** Reports the progress of the current call: number of completed work units, and number of all work units. */
  units(done: number, of: number): void;
  /** Reports tokens of the watched row in order, starting at the first token of each turn. */
  row(row: string, ids: number[], logprobs: number[]): void;
}

const methods: Record<keyof Engine, true> = {
  load: true,
  generate: true,
  release: true,
  score: true,
  inspect: true,
  attributePictures: true,
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

/**
 * Returns an object with all methods of the engine. `method` receives the name of a method and returns its
 * implementation.
 */
export const engineOf = (method: (name: keyof Engine) => (...args: unknown[]) => Promise<never>): Engine<LocalState> =>
  recordOf(Object.keys(methods) as (keyof Engine)[], method);

interface EncodedError {
  message: string;
  kind: 'stopped' | 'notFinite' | 'user' | 'internal';
  stack?: string;
}

/** Encodes errors of the engine for another thread. A UserError keeps its class; an internal error keeps its stack. */
export const engineErrors: ErrorCodec = {
  encode: (error): EncodedError => ({ message: error.message, stack: error.stack, kind: kindOf(error) }),
  decode: encoded => {
    const { message, kind, stack } = encoded as EncodedError;
    if (kind === 'stopped') return new RunStopped();
    if (kind === 'notFinite') return new NotFiniteError(message);
    if (kind === 'user') return new UserError(message);
    return Object.assign(new Error(message), stack !== undefined && { stack });
  },
};

function kindOf(error: Error): EncodedError['kind'] {
  if (error instanceof RunStopped) return 'stopped';
  if (error instanceof NotFiniteError) return 'notFinite';
  return error instanceof UserError ? 'user' : 'internal';
}
