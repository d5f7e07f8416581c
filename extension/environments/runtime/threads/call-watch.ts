// Time limit of the calls of one worker. The worker publishes its current call in a shared array; a call that shows no
// progress for the limit is reported. Works although the call blocks the worker's event loop.
import { noItem, progress } from './work';

/** Milliseconds beyond the time limit for which the worker may run no environment code, at start or between items. */
const startAllowance = 10_000;

export interface CallWatchOwner {
  /** Whether items are pending. */
  pending(): boolean;
  /** The current call has exceeded the time limit. */
  exceeded(): void;
}

export class CallWatch {
  /** When the current call was first seen (`performance.now()`). */
  since = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param limitMs time limit of a call in milliseconds, which a debugger may lift */
  constructor(
    private readonly shared: Int32Array,
    private readonly limitMs: () => number,
    private readonly owner: CallWatchOwner,
  ) {}

  /** Watches until no items are pending. */
  start(): void {
    if (this.timer) return;
    let calls = -1;
    let item = -1;
    this.since = performance.now();
    let limit = this.limitMs();
    const look = () => {
      const now = performance.now();
      const limitMs = this.limitMs();
      if (limit !== limitMs) [limit, this.since] = [limitMs, now]; // a debugger was attached or detached
      const newestCalls = Atomics.load(this.shared, progress.calls);
      const newestItem = Atomics.load(this.shared, progress.item);
      if (newestCalls !== calls || newestItem !== item) [calls, item, this.since] = [newestCalls, newestItem, now];
      else if (!this.owner.pending()) this.stop();
      else if (now - this.since >= limitMs + (item === noItem ? startAllowance : 0)) this.owner.exceeded();
    };
    this.timer = setInterval(look, Math.min(Math.max(limit / 8, 5), 250));
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
