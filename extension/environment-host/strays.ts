// Finds whose code threw where nothing awaits it: a promise without an await, a timer, an event. Each item of work runs as its
// owner's; a hook marks whatever is created meanwhile (promises, timers, requests), and what these create. AsyncLocalStorage does the same,
// but not in every version where Node.js reports an error, and costs twice as much.
import { createHook, executionAsyncResource } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
import { FaultError, strayFault } from './fault';
import type { Fault, WorkResult } from './work';

type Found = Omit<Fault, 'action'>;

/** An episode's life in the worker, or the loading of the code: what its code leaves behind belongs to it. */
export class Owner {
  /** Items in hand. */
  working = 0;
  /** Nothing of it can be failed any more. */
  over = false;
  /** Found while no item was in hand, or by the item in hand: fails it. */
  fault: Found | undefined;
  /** Ends the call that waits. */
  interrupt: ((error: FaultError) => void) | undefined;
  /** Its newest result, until it is sent. */
  unsent: WorkResult | undefined;

  /** `name` says who it is in a log. */
  constructor(readonly name: string) {}

  /** Fails the item in hand, or the one whose result was not sent yet, or else the next. False where none can be failed. */
  strike(fault: Found): boolean {
    if (this.over) return false;
    if (this.working === 0 && this.unsent) {
      this.over = true;
      if (this.unsent.fault) return false;
      this.unsent.fault = { ...fault, action: -1 };
      return true;
    }
    this.fault ??= fault;
    this.interrupt?.(new FaultError(fault));
    return true;
  }
}

const mark = Symbol('owner');
interface Marked {
  [mark]?: Owner;
}

/** Whose code runs now, up to its first await. */
let active: Owner | undefined;

/** Whose code runs now, in whatever it has begun. */
const currentOwner = (): Owner | undefined => active ?? (executionAsyncResource() as Marked)[mark];

createHook({
  init(_id, _type, _trigger, resource) {
    const owner = active ?? (executionAsyncResource() as Marked)[mark];
    if (owner !== undefined) (resource as Marked)[mark] = owner;
  },
}).enable();

/** Runs code in its owner's context. */
export function runFor<T>(owner: Owner, code: () => T): T {
  const before = active;
  active = owner;
  try {
    return code();
  } finally {
    active = before;
  }
}

/**
 * Hands what was thrown in nobody's sight to its owner; `log` is told of what comes when that can't be failed any more. An error without an
 * owner ends the thread, as it would without this. Environments that listen for such errors themselves keep them. What is returned listens
 * again where environment code has ended that.
 */
export function catchStrays(log: (text: string) => void): () => void {
  const strike = (owner: Owner | undefined, error: unknown) => {
    if (!owner) {
      process.off('uncaughtException', onException);
      setImmediate(() => {
        throw error;
      });
    } else if (!owner.strike(strayFault(error))) log(`${owner.name} ${strayFault(error).what}, after its end\n`);
  };
  const onException = (error: unknown) => {
    if (process.listenerCount('uncaughtException') === 1) strike(currentOwner(), error);
  };
  const onRejection = (reason: unknown, promise: Promise<unknown>) => {
    if (process.listenerCount('unhandledRejection') === 1) strike((promise as Marked)[mark], reason);
  };
  const { queueMicrotask } = globalThis;
  globalThis.queueMicrotask = callback => {
    const owner = currentOwner();
    if (!owner || typeof callback !== 'function') return queueMicrotask(callback);
    queueMicrotask(() => {
      try {
        callback();
      } catch (error) {
        strike(owner, error); // Node.js reports these without their context
      }
    });
  };
  const listen = () => {
    if (process.listenerCount('uncaughtException') === 0) process.on('uncaughtException', onException);
    if (process.listenerCount('unhandledRejection') === 0) process.on('unhandledRejection', onRejection);
  };
  listen();
  return listen;
}

/**
 * Keeps the thread's end and its channel from environment code: the thread holds other episodes too. Whoever asks for its end gets an error;
 * the channel looks as it does in a main thread.
 */
export function keepThread(): void {
  Object.assign(threads, { parentPort: null, workerData: null });
  syncBuiltinESMExports();
  const native = { exit: process.exit, reallyExit: (process as unknown as { reallyExit: unknown }).reallyExit };
  const refuse = (code?: number | string | null): never => {
    const owner = currentOwner();
    if (!owner) {
      Object.assign(process, native);
      return process.exit(code);
    }
    const what = `ended its thread with exit code ${code ?? process.exitCode ?? 0}`;
    const fault: Found = { kind: 'died', what, remedy: 'throw an error instead of ending the process' };
    owner.strike(fault);
    throw new FaultError(fault);
  };
  Object.assign(process, { exit: refuse, reallyExit: refuse });
}
