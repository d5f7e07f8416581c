// Attributes stray errors to the episode that caused them. A stray error is an error that no code awaits, for example
// in a promise without await, in a timer or in an event handler. Each work item (a call for one episode) runs with an
// owner, which identifies the episode. An async hook tags each resource that the item creates (a promise, a timer, a
// request) with the owner. Resources that a tagged resource creates get the same owner. AsyncLocalStorage does not
// suffice: some Node.js versions lose its context when they report an error, and AsyncLocalStorage takes twice the time
// of this hook.
import { createHook, executionAsyncResource } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
import { FaultError, unhandledFault } from '../threads/fault';
import type { Fault, WorkResult } from '../threads/worker-messages';

type Found = Omit<Fault, 'action'>;

/** Identifies an episode, or the loading of the code. Stray errors are attributed to an owner. */
export class Owner {
  /** Number of running items. */
  working = 0;
  /** If true, stray errors can no longer fail an item of this owner. */
  over = false;
  /** Stray fault that fails the running item or, if no item is running, the next item. */
  fault: Found | undefined;
  /** Rejects the promise for which a call is waiting; undefined if no call is waiting. */
  interrupt: ((error: FaultError) => void) | undefined;
  /** The latest result, until it has been sent. */
  unsent: WorkResult | undefined;

  /** @param name identifies the owner in logs */
  constructor(readonly name: string) {}

  /**
   * Attributes a stray fault to this owner. The running item fails. If no item is running, the last item fails or, if
   * its result has already been sent, the next item fails. Returns false if no item can fail.
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

/** Owner of the synchronous code that is running. */
let active: Owner | undefined;

/** Owner of the code that is running, including asynchronous continuations. */
const currentOwner = (): Owner | undefined => active ?? (executionAsyncResource() as Tagged)[ownerTag];

createHook({
  init(_id, _type, _trigger, resource) {
    const owner = active ?? (executionAsyncResource() as Tagged)[ownerTag];
    if (owner !== undefined) (resource as Tagged)[ownerTag] = owner;
  },
}).enable();

/** Runs code with `owner` as its owner. */
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
 * Attributes unhandled errors to their owners. An error without an owner ends the thread, which is Node.js's default.
 * If environment code has installed listeners for unhandled errors, only these listeners receive the errors. Returns a
 * function that installs our listeners again if environment code has removed all listeners.
 * @param log receives each error whose owner has ended, so that no item of this owner can fail
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
        strike(owner, error); // Node.js reports these errors without their async context
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
 * Prevents environment code from ending the thread and from using its message port, because the thread also runs other
 * episodes. `process.exit` throws when environment code calls it. `parentPort` and `workerData` are null, as in a main
 * thread.
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
