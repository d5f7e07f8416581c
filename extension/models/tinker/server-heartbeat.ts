// Heartbeats of a session, which keep its models on the server, and what they show about the server: after several
// heartbeats without any answer it counts as silent, although requests that it holds have not failed. After a stop,
// heartbeats are sent more often, and fewer unanswered ones end the waiting.
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between heartbeats; a server drops the models of a session without one for 300 s. */
export const heartbeatMs = 10_000;
/** Consecutive unanswered heartbeats after which the server counts as silent. */
const silentAfter = 3;
/**
 * Milliseconds between heartbeats after a stop, and time limit of each; the second unanswered one in a row ends the
 * waiting. A single one may be late because this process computes a loss.
 */
const stopBeatMs = 750;
const stopAfter = 2;

export interface HeartbeatOptions {
  /** Milliseconds between heartbeats, and time limit of each. */
  everyMs: number;
  /** Sends one heartbeat; resolves with whether the server answered. Rejects when the connection has ended. */
  send(timeoutMs: number): Promise<boolean>;
  /** Number of answers to any requests so far; an answer to another request counts like one to a heartbeat. */
  answers(): number;
  /** Called after each heartbeat; `silent`: whether several in a row had no answer. */
  onBeat(silent: boolean): void;
}

export class ServerHeartbeat {
  private readonly ended = new AbortController();
  private beating: Promise<void> | undefined;

  constructor(private readonly options: HeartbeatOptions) {}

  /** Sends heartbeats until `end`. */
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
   * Resolves when the server leaves two heartbeats unanswered, or when `mayWait` is false. For the time after a stop, in
   * which only a server that answers is waited for.
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
      sleep(limitMs, false, { signal: late.signal, ref: false }).catch(() => false), // also limits the connecting
    ]);
    late.abort();
    return answered || this.options.answers() > before;
  }

  /** Resolves with false if the heartbeats have ended. */
  private pause(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.ended.signal, ref: false }).catch(() => false);
  }
}
