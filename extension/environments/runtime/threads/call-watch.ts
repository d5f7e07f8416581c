// Enforces the time limit of calls in one worker. The worker publishes its current call in a shared array, which the
// main thread can read while a call blocks the worker's event loop. A call is reported if it makes no progress within
// the time limit. The limit is workbench.step_timeout_ms, or the longer patience_ms of an environment
// (thread-runtime.ts); its default is in media/presets/ppo_trainer.yaml.
import { noItem, progress } from './worker-messages';

/**
 * Additional milliseconds that are allowed while the worker runs no environment code: at the start of the thread, and
 * between items (such as the reset or step of an episode).
 */
const startAllowance = 10_000;

export interface CallWatchOwner {
  /** Whether at least one item of this worker has no result yet. */
  pending(): boolean;
  /** Called when the current call has exceeded the time limit. */
  exceeded(): void;
}

export class CallWatch {
  /** Value of `performance.now()` when the current call was first observed. */
  since = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param limitMs returns the time limit of a call in milliseconds; the limit changes while a debugger is attached */
  constructor(
    private readonly shared: Int32Array,
    private readonly limitMs: () => number,
    private readonly owner: CallWatchOwner,
  ) {}

  /** Starts the checks; they stop when no items are pending. */
  start(): void {
    if (this.timer) return;
    let calls = -1;
    let item = -1;
    this.since = performance.now();
    let limit = this.limitMs();
    const look = () => {
      const now = performance.now();
      const limitMs = this.limitMs();
      // the limit changed, because a debugger was attached or detached
      if (limit !== limitMs) [limit, this.since] = [limitMs, now];
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
