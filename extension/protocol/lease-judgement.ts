// Whether the trainer that a lease names lives. Where the lease was written in this machine's boot and in this PID namespace, the process
// decides, alone: by its pid and start, whatever the clock and the time of the last touch say. Elsewhere (another machine, a container)
// its pid means nothing, and the touches decide. A lease of an earlier version says neither place nor start: its pid is
// believed where a process has it, and its touches where none has.
import type { Lease } from './run-folder';
import { leaseStaleMs } from './run-folder';
import { isSamePlace, type Processes, type ProcessPlace } from './process-identity';

/** Clocks of process starts and of leases differ by rounding; a later process starts clearly later. */
const reuseSlackMs = 2000;

/** `held` by a living process, `gone`: its process has ended, or `unknown`: the touches decide. */
export type LeaseHolder = 'held' | 'gone' | 'unknown';

/** Where a lease was written; undefined in one of an earlier version. */
export const placeOfLease = ({ host, boot, pid_namespace }: Lease): ProcessPlace | undefined =>
  host === undefined || boot === undefined || pid_namespace === undefined ? undefined : { host, boot, pid_namespace };

/** What the system says of the process that holds the lease; null for a lease that cannot be read. */
export function holderOf(lease: Lease | null, processes: Processes): LeaseHolder {
  if (lease === null) return 'unknown';
  const place = placeOfLease(lease);
  if (place !== undefined && !isSamePlace(place, processes.place)) return 'unknown';
  if (!processes.isAlive(lease.pid)) return place === undefined ? 'unknown' : 'gone';
  if (place === undefined) {
    const start = processes.startTimeOf?.(lease.pid);
    if (start === undefined) return processes.startTimeOf ? 'held' : 'unknown';
    return start > Date.parse(lease.started) + reuseSlackMs ? 'unknown' : 'held';
  }
  const start = processes.startOf(lease.pid);
  if (start === undefined || lease.process_start === undefined) return 'unknown';
  return start === lease.process_start ? 'held' : 'gone';
}

/** Whether a time of a touch is of now by this clock; one of the future is not. */
export const isFresh = (touched: number, now: number): boolean => Math.abs(now - touched) < leaseStaleMs;

/**
 * Follows the touches of one lease. The first time seen is compared with the clock; from then on what counts is whether it changes, by a
 * clock that never jumps, so that clocks that were set, or that differ between machines, make no difference.
 */
export class TouchWatch {
  private touched: number | undefined;
  private freshUntil = -Infinity;

  /**
   * The lease was last touched at `touched`.
   * @param now milliseconds since 1970
   * @param monotonic milliseconds of a clock that is never set
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
