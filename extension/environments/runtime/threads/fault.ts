// Converts values that were thrown into faults. The value may be an error of our own checks (`FaultError`), or any
// value that environment code throws.
import { longestText } from '../../../protocol/environment-message-bounds';
import { shown } from '../worker/returned-values';
import type { Fault } from './worker-messages';

type Found = Omit<Fault, 'action'>;

/** The error that our own checks throw; contains the fault to report. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  readonly #fault: Found;

  constructor(fault: Found) {
    super(fault.what);
    this.#fault = fault;
  }

  /** Returns the fault if the value is a `FaultError`, else undefined. Runs no getters or proxy traps of the value. */
  static faultIn(error: unknown): Found | undefined {
    return typeof error === 'object' && error !== null && #fault in error ? error.#fault : undefined;
  }
}

/** Returns a fault for an invalid value that an environment returned. */
export function badValue(what: string, remedy: string): FaultError {
  return new FaultError({ kind: 'bad_value', what, remedy });
}

/** Returns a fault for a call that exceeded its time limit. */
export const timedOut = (limitMs: number): Found => ({
  kind: 'timed_out',
  what: `did not return within ${limitMs} ms`,
  remedy: 'make the call return sooner, or raise its time limit',
});

/** Converts any thrown value into a fault. */
export function faultOf(error: unknown): Found {
  const own = FaultError.faultIn(error);
  if (own) return own;
  const { name, message, stack, remedy } = partsOf(error);
  // Compares names instead of classes, because a bundle may contain its own copy of MissingDependency.
  if (name === 'MissingDependency' && message !== undefined && remedy !== undefined)
    return { kind: 'threw', what: message, remedy };
  return { kind: 'threw', what: `threw ${shown(message ?? error)}`, remedy: 'fix the file and save it', stack };
}

/** Returns the fault for an error in a promise or callback that no code awaits. */
export function unhandledFault(error: unknown): Found {
  const fault = faultOf(error);
  if (FaultError.faultIn(error)) return fault;
  const what = `${fault.what} in a promise or callback that it does not await`;
  return { ...fault, what, remedy: 'await the promise, or catch the error' };
}

/** Reads the text properties of an error, each once. If a getter throws, its property is undefined. */
function partsOf(error: unknown): Record<'name' | 'message' | 'stack' | 'remedy', string | undefined> {
  const read = (key: string): string | undefined => {
    try {
      const value: unknown = (error as Record<string, unknown> | null | undefined)?.[key];
      return typeof value === 'string' ? value.slice(0, longestText) : undefined;
    } catch {
      return undefined;
    }
  };
  return { name: read('name'), message: read('message'), stack: read('stack'), remedy: read('remedy') };
}
