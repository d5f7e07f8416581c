// Faults of environment code: those found by our checks, as an error that carries its message, and those thrown by the
// code.
import { longestText } from '../../../protocol/environment-bounds';
import { shown } from '../worker/values';
import type { Fault } from './work';

type Found = Omit<Fault, 'action'>;

/** A fault found by one of our checks. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  readonly #fault: Found;

  constructor(fault: Found) {
    super(fault.what);
    this.#fault = fault;
  }

  /** Returns the fault of a FaultError, else undefined. Runs no getter or proxy trap of the value. */
  static faultIn(error: unknown): Found | undefined {
    return typeof error === 'object' && error !== null && #fault in error ? error.#fault : undefined;
  }
}

/** Fault for an invalid value returned by an environment. */
export function badValue(what: string, remedy: string): FaultError {
  return new FaultError({ kind: 'bad_value', what, remedy });
}

/** Fault for a call that exceeded its time limit. */
export const timedOut = (limitMs: number): Found => ({
  kind: 'timed_out',
  what: `did not return within ${limitMs} ms`,
  remedy: 'make it return, or allow it more time',
});

/** Converts any thrown value into a fault. */
export function faultOf(error: unknown): Found {
  const own = FaultError.faultIn(error);
  if (own) return own;
  const { name, message, stack, remedy } = partsOf(error);
  // Compared by name, since a bundle may contain its own copy of the MissingDependency class.
  if (name === 'MissingDependency' && message !== undefined && remedy !== undefined)
    return { kind: 'threw', what: message, remedy };
  return { kind: 'threw', what: `threw ${shown(message ?? error)}`, remedy: 'fix the file and save it', stack };
}

/** Converts a value thrown where nothing awaits it into a fault. */
export function unhandledFault(error: unknown): Found {
  const fault = faultOf(error);
  if (FaultError.faultIn(error)) return fault;
  const what = `${fault.what} in a promise or callback that it does not await`;
  return { ...fault, what, remedy: 'await it, or catch what it throws' };
}

/** Reads the text properties of an error, each once. A getter that throws counts as missing. */
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
