// Faults of environment code: those that we find, as an error that carries its sentence, and those that were thrown.
import { longestText } from '../protocol/environment-bounds';
import { shown } from './values';
import type { Fault } from './work';

type Found = Omit<Fault, 'action'>;

/** A fault found by a check of ours. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  readonly #fault: Found;

  constructor(fault: Found) {
    super(fault.what);
    this.#fault = fault;
  }

  /** The fault of an error of this class; asks nothing of a value that may be a trap. */
  static faultIn(error: unknown): Found | undefined {
    return typeof error === 'object' && error !== null && #fault in error ? error.#fault : undefined;
  }
}

/** A value that an environment must not return. */
export function badValue(what: string, remedy: string): FaultError {
  return new FaultError({ kind: 'bad_value', what, remedy });
}

/** A call that took too long. */
export const timedOut = (limitMs: number): Found => ({
  kind: 'timed_out',
  what: `did not return within ${limitMs} ms`,
  remedy: 'make it return, or allow it more time',
});

/** Whatever was thrown, as a fault. */
export function faultOf(error: unknown): Found {
  const own = FaultError.faultIn(error);
  if (own) return own;
  const { name, message, stack, remedy } = partsOf(error);
  // By its name, since a bundle may carry a MissingDependency class of its own.
  if (name === 'MissingDependency' && message !== undefined && remedy !== undefined)
    return { kind: 'threw', what: message, remedy };
  return { kind: 'threw', what: `threw ${shown(message ?? error)}`, remedy: 'mend the file and save it', stack };
}

/** What was thrown where nothing awaits it, as a fault. */
export function strayFault(error: unknown): Found {
  const fault = faultOf(error);
  if (FaultError.faultIn(error)) return fault;
  const what = `${fault.what} in a promise or a callback that it does not wait for`;
  return { ...fault, what, remedy: 'await it, or catch what it throws' };
}

/** The texts of an error, each read once; a getter that throws counts as missing. */
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
