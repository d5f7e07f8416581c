// Identifies the process that runs a sweep, so that a sweep is not run twice at the same time and the editor knows
// whether it is running. A pid alone is ambiguous (process-identity.ts).
import type { SweepRunner } from '../run-data/sweep-file';
import { currentPidScope, isAlive, isSamePidScope, startOf } from './process-identity';

/** Returns the identity of this process. */
export function thisRunner(): SweepRunner {
  const start = startOf(process.pid);
  return { pid: process.pid, ...currentPidScope, ...(start !== undefined && { process_start: start }) };
}

/**
 * Whether the process is alive on this machine and is still the process that was recorded. False for a process of
 * another machine or container, which cannot be checked.
 */
export function isRunnerAlive(runner: SweepRunner | null): boolean {
  if (!runner || !isSamePidScope(runner, currentPidScope) || !isAlive(runner.pid)) return false;
  return runner.process_start === undefined || startOf(runner.pid) === runner.process_start;
}
