// Attributes errors that nothing awaits (a promise without await, a timer, an event) to the episode whose code caused
// them. Each work item runs as its owner; an async hook tags every resource created meanwhile (promises, timers,
// requests) and those that they create. AsyncLocalStorage would do the same, but some Node.js versions lose its context
// where they report an error, and it costs twice as much.
import { createHook, executionAsyncResource } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
import { FaultError, unhandledFault } from '../threads/fault';
import type { Fault, WorkResult } from '../threads/work';

type Found = Omit<Fault, 'action'>;

/** The lifetime of an episode in the worker, or the loading of the code. Stray errors are attributed to it. */
export class Owner {
  /** Number of running items. */
  working = 0;
  /** No item of this owner can be failed any more. */
  over = false;
  /** Stray fault that fails the running item, or the next one if none is running. */
  fault: Found | undefined;
  /** Rejects the call that is waiting. */
  interrupt: ((error: FaultError) => void) | undefined;
  /** Newest result, until it is sent. */
  unsent: WorkResult | undefined;

  /** `name` identifies the owner in logs. */
  constructor(readonly name: string) {}

  /**
   * Fails the running item, else the result that is not sent yet, else the next item. Returns false if none can be
   * failed.
   */
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

const ownerTag = Symbol('owner');
interface Tagged {
  [ownerTag]?: Owner;
}

/** Owner of the code that runs now, up to its first await. */
let active: Owner | undefined;

/** Owner of the code that runs now, also in asynchronous continuations. */
const currentOwner = (): Owner | undefined => active ?? (executionAsyncResource() as Tagged)[ownerTag];

createHook({
  init(_id, _type, _trigger, resource) {
    const owner = active ?? (executionAsyncResource() as Tagged)[ownerTag];
    if (owner !== undefined) (resource as Tagged)[ownerTag] = owner;
  },
}).enable();

/** Runs code in the context of its owner. */
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
 * Attributes unhandled errors to their owners. `log` receives errors of owners that can no longer be failed. An error
 * without an owner ends the thread, as it would by default. If environment code installs its own listeners for such
 * errors, these get them instead. The returned function installs our listeners again after environment code has removed
 * them.
 */
export function catchUnhandled(log: (text: string) => void): () => void {
  const strike = (owner: Owner | undefined, error: unknown) => {
    if (!owner) {
      process.off('uncaughtException', onException);
      setImmediate(() => {
        throw error;
      });
    } else if (!owner.strike(unhandledFault(error)))
      log(`${owner.name} ${unhandledFault(error).what}, after its end\n`);
  };
  const onException = (error: unknown) => {
    if (process.listenerCount('uncaughtException') === 1) strike(currentOwner(), error);
  };
  const onRejection = (reason: unknown, promise: Promise<unknown>) => {
    if (process.listenerCount('unhandledRejection') === 1) strike((promise as Tagged)[ownerTag], reason);
  };
  const { queueMicrotask } = globalThis;
  globalThis.queueMicrotask = callback => {
    const owner = currentOwner();
    if (!owner || typeof callback !== 'function') return queueMicrotask(callback);
    queueMicrotask(() => {
      try {
        callback();
      } catch (error) {
        strike(owner, error); // Node.js reports these errors without their context
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
 * Prevents environment code from ending the thread or using its message port, because the thread holds other episodes.
 * Its calls of `process.exit` throw. `parentPort` and `workerData` are null, as in a main thread.
 */
export function keepThread(): void {
  Object.assign(threads, { parentPort: null, workerData: null });
  syncBuiltinESMExports();
  const native = { exit: process.exit, reallyExit: Reflect.get(process, 'reallyExit') as unknown };
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
