// Batches the new metric lines of a running run, so that the charts are not redrawn for every step. The first lines are
// passed to the page immediately; lines that arrive within the next 200 ms are passed to it together.
import { appendAll } from '../../extension/common/lists';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { MetricNumbers } from '../../extension/run-data/metric-segments';
import type { RunEvent } from '../../extension/run-data/run-events';

/** Minimum milliseconds between two drawings of a growing run. */
const growthMs = 200;

/** New lines and events, as in a message from the host. */
export interface Lines {
  run: RunSummary;
  lines: MetricNumbers[];
  events: RunEvent[];
}

export class IncomingLines {
  private waiting: Lines | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly pass: (gathered: Lines) => void) {}

  add({ run, lines, events }: Lines): void {
    this.waiting ??= { run, lines: [], events: [] };
    this.waiting.run = run;
    appendAll(this.waiting.lines, lines);
    appendAll(this.waiting.events, events);
    if (this.timer === undefined) this.passOn();
  }

  /** Discards waiting lines, because a new snapshot contains them. */
  drop(): void {
    this.waiting = null;
  }

  private passOn(): void {
    const gathered = this.waiting;
    this.waiting = null;
    this.timer = undefined;
    if (!gathered) return;
    this.timer = setTimeout(() => this.passOn(), growthMs);
    this.pass(gathered);
  }
}
