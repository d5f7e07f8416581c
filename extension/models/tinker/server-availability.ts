// Detects outages of a server, and limits how long requests wait for the server. An outage begins with a failed request
// or with several unanswered heartbeats, and ends with the next answer. The beginning and the end are reported. If an
// outage lasts longer than `outageMs`, or if the server does not answer after a stop of the run, all requests and waits
// throw an error with the reason.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { heartbeatMs, ServerHeartbeat } from './server-heartbeat';

export interface AvailabilityOptions {
  /** Maximum duration of an outage in milliseconds. If an outage lasts longer, the pending requests fail. */
  outageMs: number;
  /** Reports the reason of an outage when it begins, and null when the server answers again. */
  onOutage(reason: string | null): void;
  /** Duration in milliseconds of the first pause between two attempts, and of the longest pause. */
  pauseMs?: { first: number; longest: number };
  /** Milliseconds between heartbeats. */
  heartbeatMs?: number;
  /**
   * A time in milliseconds. After a stop, requests continue as long as the server answers heartbeats and completes at
   * least one request within this time.
   */
  stopMs?: number;
}

const defaultStopMs = 120_000;

export class ServerAvailability {
  /** When this is aborted, all requests and waits throw its abort reason. */
  private readonly ended = new AbortController();
  private heartbeat: ServerHeartbeat | undefined;
  /** Start of the current outage by `performance.now()`; null while the server answers. */
  private outageSince: number | null = null;
  /** True during an outage that was detected by unanswered heartbeats. */
  private silent = false;
  /** Number of answers so far, to requests of any kind. */
  private answers = 0;
  /** Time at which the latest request was completed; after a stop, the time of the stop if this is later. */
  private progressed = 0;
  private stopping = false;

  /**
   * @param unreachable returns the error for a request that failed with `reason` during an outage longer than
   * `outageMs`
   */
  constructor(
    private readonly options: AvailabilityOptions,
    private readonly unreachable: (path: string, reason: string) => UserError,
  ) {
    setMaxListeners(0, this.ended.signal); // each request adds a listener
  }

  get signal(): AbortSignal {
    return this.ended.signal;
  }

  /** Whether the server has answered a request of any kind. */
  get hasAnswered(): boolean {
    return this.answers > 0;
  }

  /** Records an answer to a request of any kind, including heartbeats. */
  noteAnswer(): void {
    this.answers++;
  }

  /** Records that the server works. Ends the current outage. */
  noteService(): void {
    this.silent = false;
    if (this.outageSince === null) return;
    this.outageSince = null;
    this.options.onOutage(null);
  }

  /** Records that a request was completed. */
  noteResult(): void {
    this.noteService();
    this.progressed = performance.now();
  }

  /**
   * Waits before the next attempt of a failed request. The pause grows with the duration of the outage.
   * @throws UserError if the outage lasts longer than `outageMs`, or RunStopped after a stop
   */
  async retry(path: string, reason: string): Promise<void> {
    this.beginOutage(reason);
    this.signal.throwIfAborted();
    const lasted = performance.now() - this.outageSince!;
    if (lasted > this.options.outageMs) throw this.unreachable(path, reason);
    await this.pause(Math.min(this.pauses.longest, Math.max(this.pauses.first, lasted)));
  }

  /**
   * Waits, by default as long as the first pause. @throws the abort reason of `signal` if it is aborted during the wait
   */
  async pause(ms = this.pauses.first): Promise<void> {
    const { signal } = this;
    await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  /** Sends heartbeats with `send` until `end` is called. `send` resolves with true if the server has answered. */
  keepAlive(send: (timeoutMs: number) => Promise<boolean>): void {
    this.heartbeat = new ServerHeartbeat({
      everyMs: this.options.heartbeatMs ?? heartbeatMs,
      send,
      answers: () => this.answers,
      onBeat: silent => this.judge(silent),
    });
    this.heartbeat.start();
  }

  /**
   * Called when the run is stopped. As long as the server answers heartbeats, requests continue, so that a training
   * step can be finished and a checkpoint can be written. All requests reject with RunStopped when the server stops
   * answering, or when no request has been completed for `stopMs`.
   */
  interrupt(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.progressed = performance.now();
    const { stopMs = defaultStopMs } = this.options;
    if (this.outageSince !== null || !this.heartbeat) return this.ended.abort(new RunStopped());
    void this.heartbeat
      .untilSilent(() => performance.now() - this.progressed < stopMs)
      .then(() => this.ended.abort(new RunStopped()));
  }

  /** Ends heartbeats, requests and waiting. */
  end(): void {
    this.heartbeat?.end();
    this.ended.abort();
  }

  /**
   * Begins an outage if the server is silent. If the server answers again, ends an outage that began in this way. If
   * such an outage has lasted longer than `outageMs`, aborts all requests.
   */
  private judge(silent: boolean): void {
    if (silent && this.outageSince === null) {
      this.silent = true;
      this.beginOutage('no answer to any request');
    } else if (!silent && this.silent) this.noteService();
    if (this.silent && performance.now() - this.outageSince! > this.options.outageMs)
      this.ended.abort(this.unreachable('any request', 'no answer in time'));
  }

  private beginOutage(reason: string): void {
    if (this.stopping) this.ended.abort(new RunStopped());
    if (this.outageSince !== null) return;
    this.outageSince = performance.now();
    this.options.onOutage(reason);
  }

  private get pauses(): { first: number; longest: number } {
    return this.options.pauseMs ?? { first: 250, longest: 10_000 };
  }
}
