// Sends a run's metrics to an MLflow server while the run trains. Training never waits for the server and never fails
// because of it: lines wait in a bounded queue, a failed request is repeated with growing pauses, and the first failure
// is reported once. What could not be sent is in the run folder, from which `ragen export --mlflow` sends it later.
import type { Manifest } from '../../run-data/run-manifest';
import type { RunState } from '../../run-data/run-status-file';
import { MlflowError, type MlflowClient } from './mlflow-client';
import { mlflowState, openMlflowRun, sendMetrics, type OpenedRun, type TimedMetrics } from './mlflow-run';

export interface LivePace {
  /** Most lines that wait; older ones are dropped. */
  queue: number;
  /** Milliseconds before the first repetition; doubled with each failure up to `longestMs`. */
  retryMs: number;
  longestMs: number;
  /** Milliseconds that `close` waits for the queue. */
  closeMs: number;
}

const defaultPace: LivePace = { queue: 2000, retryMs: 1000, longestMs: 60_000, closeMs: 10_000 };

export class LiveMlflow {
  private readonly queue: TimedMetrics[] = [];
  private opened: OpenedRun | undefined;
  private dropped = 0;
  private isReported = false;
  /** Set when the server refuses what is sent, so that later attempts would fail too. */
  private isRefused = false;
  private isClosing = false;
  private wake: () => void = () => undefined;
  private readonly working: Promise<void>;

  /** `report` receives at most one sentence for the first failure, and one at the end if lines were not sent. */
  constructor(
    private readonly client: MlflowClient,
    private readonly manifest: Manifest,
    private readonly report: (sentence: string) => void,
    private readonly pace: LivePace = defaultPace,
  ) {
    this.working = this.work();
  }

  /** Adds a line of metrics; returns at once. */
  push(line: TimedMetrics): void {
    if (this.isRefused || this.isClosing) return void this.dropped++;
    if (this.queue.push(line) > this.pace.queue) {
      this.queue.shift();
      this.dropped++;
    }
    this.wake();
  }

  /** Sends the rest and the final state, for at most `pace.closeMs`. Never rejects. */
  async close(state: RunState): Promise<void> {
    this.isClosing = true;
    this.wake();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, this.pace.closeMs);
    });
    await Promise.race([this.working.then(() => this.end(state)), late]);
    clearTimeout(timer);
    const lost = this.dropped + this.queue.length;
    if (lost > 0)
      this.report(
        `mlflow: ${lost} lines of metrics were not sent to ${this.client.url}: send them with ragen export --run ${this.manifest.id} --mlflow ${this.client.url}`,
      );
  }

  private async work(): Promise<void> {
    for (let failures = 0; ;) {
      if (this.queue.length === 0) {
        if (this.isClosing || this.isRefused) return;
        await this.next();
        continue;
      }
      try {
        await this.sendQueue();
        failures = 0;
      } catch (error) {
        failures++;
        this.note(error as Error);
        if (this.isRefused || this.isClosing) return;
        await this.next(Math.min(this.pace.longestMs, this.pace.retryMs * 2 ** (failures - 1)));
      }
    }
  }

  private async sendQueue(): Promise<void> {
    this.opened ??= await this.open();
    const lines = this.queue.slice(0, 50);
    await sendMetrics(this.client, this.opened.run.id, lines);
    // Lines that were dropped in the meantime are no longer at the start of the queue.
    for (const line of lines) if (this.queue[0] === line) this.queue.shift();
  }

  private async open(): Promise<OpenedRun> {
    const opened = await openMlflowRun(this.client, this.manifest, this.manifest.name);
    if (opened.sentStep >= 0) await this.client.updateRun(opened.run.id, 'RUNNING', null);
    return opened;
  }

  private async end(state: RunState): Promise<void> {
    if (!this.opened) return;
    try {
      const ended = mlflowState(state);
      await this.client.updateRun(this.opened.run.id, ended, ended === 'RUNNING' ? null : Date.now());
    } catch (error) {
      this.note(error as Error);
    }
  }

  private note(error: Error): void {
    if (!(error instanceof MlflowError) || !error.isTransient) this.isRefused = true;
    if (this.isReported) return;
    this.isReported = true;
    const then = this.isRefused ? 'no metrics are sent' : 'the run continues and tries again';
    this.report(`mlflow: ${error.message}: ${then}`);
  }

  /** Resolves when a line is added, when the sender is closed or, if given, after `ms`. */
  private next(ms?: number): Promise<void> {
    return new Promise(resolve => {
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      this.wake = () => {
        if (ms !== undefined && !this.isClosing) return; // new lines do not shorten a pause
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
