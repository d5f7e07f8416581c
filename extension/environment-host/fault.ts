// Faults of environment code: those that we find, as an error that carries its sentence, and those that were thrown.
import { longestText } from '../protocol/environment-bounds';
import { shown } from './values';
import type { Fault } from './work';

/** A fault found by a check of ours. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  constructor(readonly fault: Omit<Fault, 'action'>) {
    super(fault.what);
  }
}

/** A value that an environment must not return. */
export function badValue(what: string, remedy: string): FaultError {
  return new FaultError({ kind: 'bad_value', what, remedy });
}

/** A call that took too long. */
export const timedOut = (limitMs: number): Omit<Fault, 'action'> => ({
  kind: 'timed_out',
  what: `did not return within ${limitMs} ms`,
  remedy: 'make it return, or allow it more time',
});

/** Whatever was thrown, as a fault. */
export function faultOf(error: unknown): Omit<Fault, 'action'> {
  if (error instanceof FaultError) return error.fault;
  const { name, message, stack, remedy } = (error ?? {}) as Record<string, unknown>;
  // By its name, since a bundle may carry a MissingDependency class of its own.
  if (name === 'MissingDependency' && typeof message === 'string' && typeof remedy === 'string')
    return { kind: 'threw', what: message.slice(0, longestText), remedy: remedy.slice(0, longestText) };
  return {
    kind: 'threw',
    what: `threw ${shown(typeof message === 'string' ? message : error)}`,
    remedy: 'mend the file and save it',
    stack: typeof stack === 'string' ? stack.slice(0, longestText) : undefined,
  };
}
