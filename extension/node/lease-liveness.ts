// Decides whether the trainer named by a lease is alive. If the lease was written in this boot and in the PID namespace
// of this process, the trainer's pid and start time decide. Otherwise, for example on another machine or in a
// container, the pid is meaningless. The trainer is then considered alive as long as it touches the lease, that is,
// updates the lease's modification time. A trainer that is alive but does not touch its lease is not responding: a busy
// or suspended machine delays touches, so this does not show that the trainer has ended. A lease of an earlier version contains neither PID scope nor start time. For
// such a lease, the trainer is considered alive if a process with the lease's pid exists; otherwise, the time of the
// last touch decides.
import type { Lease } from '../run-data/lease-file';
import { leaseOldMs, leaseStaleMs } from '../run-data/lease-file';
import { isSamePidScope, type Processes, type PidScope } from './process-identity';

/**
 * Tolerance in milliseconds for rounding when process start times are compared with lease times. If a process started
 * later than the lease time plus this tolerance, it is not the lease's trainer: the system has reused the pid.
 */
const reuseSlackMs = 2000;

/**
 * `held`: the process is alive. `gone`: the process has ended. `unknown`: the process cannot be checked, so the time of
 * the lease's last touch decides.
 */
export type LeaseHolder = 'held' | 'gone' | 'unknown';

/** Returns the PID scope in which a lease was written; undefined for a lease of an earlier version. */
export const pidScopeOf = ({ host, boot, pid_namespace }: Lease): PidScope | undefined =>
  host === undefined || boot === undefined || pid_namespace === undefined ? undefined : { host, boot, pid_namespace };

/** Returns the state of the process that a lease names; `unknown` for null, which stands for an unreadable lease. */
export function holderOf(lease: Lease | null, processes: Processes): LeaseHolder {
  if (lease === null) return 'unknown';
  const pidScope = pidScopeOf(lease);
  if (pidScope !== undefined && !isSamePidScope(pidScope, processes.pidScope)) return 'unknown';
  if (!processes.isAlive(lease.pid)) return pidScope === undefined ? 'unknown' : 'gone';
  if (pidScope === undefined) {
    const start = processes.startTimeOf?.(lease.pid);
    if (start === undefined) return processes.startTimeOf ? 'held' : 'unknown';
    return start > Date.parse(lease.started) + reuseSlackMs ? 'unknown' : 'held';
  }
  const start = processes.startOf(lease.pid);
  if (start === undefined || lease.process_start === undefined) return 'unknown';
  return start === lease.process_start ? 'held' : 'gone';
}

/**
 * State of a run's trainer as shown to users. `silent`: the trainer is alive, or was a moment ago, but does not respond.
 * `gone`: its process has ended, or it is on another machine and its lease is old.
 */
export type TrainerLife = 'responding' | 'silent' | 'gone';

/**
 * Returns the state of a trainer. `silentMs` is the number of milliseconds since the last touch of its lease. The
 * trainer of a process that exists never counts as gone, however old its lease is.
 */
export function trainerLife(holder: LeaseHolder, silentMs: number): TrainerLife {
  if (holder === 'gone') return 'gone';
  if (silentMs < leaseStaleMs) return 'responding';
  return holder === 'held' || silentMs < leaseOldMs ? 'silent' : 'gone';
}

/** Whether a lease was touched recently. `touched` may lie in the future, because the clocks of two machines differ. */
export const isFresh = (touched: number, now: number): boolean => Math.abs(now - touched) < leaseStaleMs;

/**
 * Decides whether the holder of a lease continues to touch it. The first touch time is compared with the system clock.
 * Afterwards, whenever the touch time has changed, the lease is considered touched at the current time of a monotonic
 * clock. Clock adjustments and clock differences between machines therefore have no effect.
 */
export class TouchWatch {
  private touched: number | undefined;
  /** Value of the monotonic clock at the last touch. */
  private last = -Infinity;

  /**
   * Records that the lease was last touched at `touched`.
   * @param now milliseconds since 1970
   * @param monotonic milliseconds of a monotonic clock
   */
  see(touched: number, now: number, monotonic: number): void {
    if (touched === this.touched) return;
    const isFirst = this.touched === undefined;
    // The first touch may lie in the future, because the clocks of two machines differ.
    const age = isFresh(touched, now) ? Math.max(0, now - touched) : Math.abs(now - touched);
    this.last = isFirst ? monotonic - age : monotonic;
    this.touched = touched;
  }

  isFresh(monotonic: number): boolean {
    return this.silentMs(monotonic) < leaseStaleMs;
  }

  /** Milliseconds since the last touch; Infinity if no touch was recorded. */
  silentMs(monotonic: number): number {
    return monotonic - this.last;
  }
}
