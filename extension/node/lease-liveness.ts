// Decides whether the trainer named by a lease is alive. If the lease was written in this boot and in the PID namespace
// of this process, the trainer's pid and start time decide. Otherwise, for example on another machine or in a
// container, the pid is meaningless. The trainer is then considered alive as long as it touches the lease, that is,
// updates the lease's modification time. A lease of an earlier version contains neither PID scope nor start time. For
// such a lease, the trainer is considered alive if a process with the lease's pid exists; otherwise, the time of the
// last touch decides.
import type { Lease } from '../run-data/lease-file';
import { leaseStaleMs } from '../run-data/lease-file';
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

/** Whether a lease was touched recently. `touched` may lie in the future, because the clocks of two machines differ. */
export const isFresh = (touched: number, now: number): boolean => Math.abs(now - touched) < leaseStaleMs;

/**
 * Decides whether the holder of a lease continues to touch it. The first touch time is compared with the system clock.
 * Afterwards, whenever the touch time has changed, the lease is considered touched at the current time of a monotonic
 * clock. Clock adjustments and clock differences between machines therefore have no effect.
 */
export class TouchWatch {
  private touched: number | undefined;
  private freshUntil = -Infinity;

  /**
   * Records that the lease was last touched at `touched`.
   * @param now milliseconds since 1970
   * @param monotonic milliseconds of a monotonic clock
   */
  see(touched: number, now: number, monotonic: number): void {
    if (touched === this.touched) return;
    if (this.touched !== undefined) this.freshUntil = monotonic + leaseStaleMs;
    else if (isFresh(touched, now)) this.freshUntil = monotonic + leaseStaleMs - Math.max(0, now - touched);
    this.touched = touched;
  }

  isFresh(monotonic: number): boolean {
    return monotonic < this.freshUntil;
  }
}
