// Finds code that keeps its thread busy after its call has timed out. The thread is measured while no item is pending,
// so that other episodes' calls do not count.
import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';

/** Idle milliseconds over which the thread is measured, and the share of them that it may be busy. */
const spinMs = 1000;
const spinShare = 0.05;

export class SpinWatch {
  private timer: NodeJS.Timeout | undefined;
  /** Utilization at the start of the measured idle period. */
  private from: EventLoopUtilization | undefined;

  constructor(
    private readonly worker: Worker,
    private readonly pending: () => boolean,
    private readonly spins: () => void,
  ) {}

  /** Measures the thread once, over its next idle period: a call has timed out, but its code may still run. */
  start(): void {
    this.timer ??= setInterval(() => this.look(), spinMs / 2);
    this.timer.unref();
  }

  /** Discards the current idle period: called when items are sent. */
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
