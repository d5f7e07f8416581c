// Detects code that continues to use its thread after its call has timed out. The thread's utilization is measured
// while the thread has no pending items (resets, steps and the like), so that calls of other episodes are not measured.
import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';

/**
 * Minimum length of a measurement in milliseconds, and the utilization (0 to 1) above which the thread is regarded as
 * busy.
 */
const spinMs = 1000;
const spinShare = 0.05;

export class SpinWatch {
  private timer: NodeJS.Timeout | undefined;
  /** Event loop utilization at the start of the measurement; undefined while no measurement is running. */
  private from: EventLoopUtilization | undefined;

  constructor(
    private readonly worker: Worker,
    private readonly pending: () => boolean,
    private readonly spins: () => void,
  ) {}

  /** Requests one measurement, which begins when no items are pending. Must be called after a call has timed out. */
  start(): void {
    this.timer ??= setInterval(() => this.look(), spinMs / 2);
    this.timer.unref();
  }

  /** Discards the current measurement. Must be called when items are sent. */
  restart(): void {
    this.from = undefined;
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    if (this.pending()) return;
    const { performance } = this.worker;
    const now = performance.eventLoopUtilization();
    if (!this.from) return void (this.from = now);
    const { active, idle } = performance.eventLoopUtilization(now, this.from);
    if (active + idle < spinMs) return;
    this.stop();
    if (active / (active + idle) > spinShare) this.spins();
  }
}
