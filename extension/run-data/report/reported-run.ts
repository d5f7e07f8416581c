// A run as a report shows it, and the data that the parts of a report derive from it.
import type { ReportedRunData } from '../../../envs/api/plugins/report';
import type { Episode } from '../episode';
import { Curve } from '../charts/curve';
import type { CurveSource } from '../charts/plot-data';
import type { RunCurve } from '../charts/group-curves';
import { columnsOf, type MetricNumbers } from '../metric-segments';
import type { PickedEpisode } from '../picked-episodes';
import type { RunColour } from '../run-colour';
import type { RunEvent } from '../run-events';
import type { Manifest } from '../run-manifest';
import type { RunStatus } from '../run-status-file';

/** Why an episode is in a report: one of the picks, or the user's choice. */
export type ChosenEpisode = Pick<PickedEpisode, 'change'> & {
  kind: PickedEpisode['kind'] | 'chosen';
  episode: Episode;
};

/** The data of a run in the form in which reports receive it, with the types of its files. */
export interface ReportedRun extends ReportedRunData {
  readonly manifest: Manifest;
  readonly colour?: RunColour | undefined;
  readonly status: RunStatus | null;
  readonly events: readonly RunEvent[];
  readonly metrics: readonly MetricNumbers[];
  readonly episodes: readonly ChosenEpisode[];
}

/** The metrics of a run as columns. */
export class ReportSeries implements CurveSource {
  readonly steps: Float64Array;
  private readonly columns: Map<string, Float64Array>;

  constructor(metrics: readonly MetricNumbers[]) {
    this.columns = columnsOf(metrics);
    this.steps = this.column('step');
  }

  get keys(): string[] {
    return [...this.columns.keys()].filter(key => key !== 'step');
  }

  /** Returns the values of a key, one per line of the metrics; empty if the run has not logged it. */
  column(key: string): Float64Array {
    return this.columns.get(key) ?? new Float64Array();
  }

  curve(key: string): Curve | undefined {
    const column = this.columns.get(key);
    return column && Curve.of(column);
  }

  /** Reports draw values without smoothing. */
  smoothed(): undefined {
    return undefined;
  }

  runCurve(key: string): RunCurve {
    const values = this.columns.get(key) ?? new Float64Array(this.steps.length).fill(Number.NaN);
    return { steps: this.steps, values };
  }

  /** Returns the columns as the interpretation of a run takes them. */
  get series(): Record<string, Float64Array> {
    return Object.fromEntries(this.columns);
  }
}
