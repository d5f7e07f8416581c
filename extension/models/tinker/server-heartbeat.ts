// Sends the heartbeats of a session. Without heartbeats, the server would drop the session's models. Heartbeats also
// show whether the server still answers: after several unanswered heartbeats, the server is considered silent, even if
// no pending request has failed yet. After a stop of the run, heartbeats are sent more often, and the run stops waiting
// for the server after fewer unanswered heartbeats.
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between heartbeats. A server drops a session's models if it receives no heartbeat for 300 s. */
export const heartbeatMs = 10_000;
/** Number of consecutive unanswered heartbeats after which the server is considered silent. */
const silentAfter = 3;
/**
 * Milliseconds between two heartbeats after a stop, and maximum milliseconds until a heartbeat is answered. After
 * `stopAfter` consecutive unanswered heartbeats, the run no longer waits for the server. One unanswered heartbeat is
 * not enough, because an answer may be noticed late while this process computes a loss.
 */
const stopBeatMs = 750;
const stopAfter = 2;

export interface HeartbeatOptions {
  /** Milliseconds between two heartbeats, and maximum milliseconds until a heartbeat is answered. */
  everyMs: number;
  /** Sends one heartbeat; resolves with true if the server answered. Rejects when the connection has ended. */
  send(timeoutMs: number): Promise<boolean>;
  /**
   * Returns the number of answers to requests of any kind so far. If this number grows while the answer to a heartbeat
   * is awaited, the heartbeat counts as answered.
   */
  answers(): number;
  /** Called after each heartbeat. `silent` is true if several consecutive heartbeats were not answered. */
  onBeat(silent: boolean): void;
}

export class ServerHeartbeat {
  private readonly ended = new AbortController();
  private beating: Promise<void> | undefined;

  constructor(private readonly options: HeartbeatOptions) {}

  /** Sends heartbeats until `end` is called. */
  start(): void {
    this.beating ??= this.beat();
  }

  private async beat(): Promise<void> {
    const { everyMs, onBeat } = this.options;
    for (let missed = 0; ;) {
      if (!(await this.pause(everyMs))) return;
      missed = (await this.isAnswered(everyMs)) ? 0 : missed + 1;
      if (this.ended.signal.aborted) return;
      onBeat(missed >= silentAfter);
    }
  }

  /**
   * Resolves when the server has not answered two consecutive heartbeats, or when `mayWait` returns false. Called after
   * a stop, because a stopped run waits for the server only as long as the server answers heartbeats.
   */
  async untilSilent(mayWait: () => boolean): Promise<void> {
    const limit = Math.min(stopBeatMs, this.options.everyMs);
    for (let missed = 0; missed < stopAfter && mayWait();) {
      missed = (await this.isAnswered(limit)) ? 0 : missed + 1;
      if (missed === 0 && !(await this.pause(limit))) return;
    }
  }

  end(): void {
    this.ended.abort();
  }

  private async isAnswered(limitMs: number): Promise<boolean> {
    const before = this.options.answers();
    const late = new AbortController();
    const answered = await Promise.race([
      this.options.send(limitMs).catch(() => false),
      // This limit includes the time for connecting.
      sleep(limitMs, false, { signal: late.signal, ref: false }).catch(() => false),
    ]);
    late.abort();
    return answered || this.options.answers() > before;
  }

  /** Waits for `ms` milliseconds. Resolves with false if `end` was called. */
  private pause(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.ended.signal, ref: false }).catch(() => false);
  }
}
