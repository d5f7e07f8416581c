// Requests the distribution of scores over the visible steps; at most one request per second.
import { dashboardScores, type ScoreStrip } from '../../../extension/protocol/dashboard-page';
import type { Host } from '../../shared/host';

/** Minimum milliseconds between two requests. */
const requestIntervalMs = 1000;

/** Steps [from, to], and the number of columns into which the steps are aggregated. */
export interface StepRange {
  readonly from: number;
  readonly to: number;
  readonly columns: number;
}

/** The latest answer: one strip per tag, covering the steps [from, to]. */
export interface LoadedScores {
  readonly strips: readonly ScoreStrip[];
  readonly from: number;
  readonly to: number;
}

export class ScoreLoader {
  private asked = '';
  private askedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** @param came called with each answer of the host */
  constructor(
    private readonly host: Pick<Host, 'request'>,
    private readonly came: (scores: LoadedScores) => void,
  ) {}

  /**
   * Requests a range immediately, or as soon as `requestIntervalMs` has passed since the last request. A later call
   * replaces a waiting request.
   */
  want(range: StepRange): void {
    const { from, to, columns } = range;
    const wanted = `${from} ${to} ${columns}`;
    this.stop();
    if (wanted === this.asked) return;
    const wait = this.askedAt + requestIntervalMs - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.want(range), wait);
      return;
    }
    this.asked = wanted;
    this.askedAt = performance.now();
    this.host.request(dashboardScores, { from, to, columns }).then(
      strips => this.came({ strips, from, to }),
      () => (this.asked = ''),
    );
  }

  /** Cancels a waiting request. */
  stop(): void {
    clearTimeout(this.timer);
  }
}
