// What the engine's worker thread (models/engine-worker.ts) and its caller (remote-engine.ts) call of each other. Errors keep their
// class across threads.
import { recordOf } from '../common/records';
import type { ErrorCodec } from '../node/thread-calls';
import { UserError } from '../common/user-error';
import type { Engine } from './engine';
import { NotFiniteError } from './optimizer/not-finite';
import { RunStopped } from './run-stopped';

/** Functions of the worker. */
export interface EngineCalls extends Engine {
  /** Interrupts running calls and rejects further work, because the run is stopping. */
  interrupt(): void;
  /** Subscribes to the tokens of a row as they are sampled; null unsubscribes. */
  watch(row: string | null): void;
}

/** Functions of the caller, without results. */
export interface EngineReports {
  /** Progress of the running generation calls. */
  tokens(sampled: number): void;
  /** Progress of the current call, in units of work. */
  units(done: number, of: number): void;
  /** Tokens of the watched row, in order, from the first token of each turn on. */
  row(row: string, ids: number[], logprobs: number[]): void;
}

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

/** Returns an object with the engine's methods, each made by `method`. */
export const engineOf = (method: (name: keyof Engine) => (...args: unknown[]) => Promise<never>): Engine =>
  recordOf(Object.keys(methods) as (keyof Engine)[], method);

interface EncodedError {
  message: string;
  kind: 'stopped' | 'notFinite' | 'user' | 'internal';
  stack?: string;
}

/** Errors of the engine: the user's errors keep their class, internal ones their stack. */
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
