// The interface of charts. The charts of the dashboard (extension/run-data/charts/chart-plan.ts) are plans, which list the
// metrics that a chart draws. A file whose default export is created by `defineChart` and that `workbench.plugins.charts`
// lists defines such a plan too, or computes the lines of its chart from the episodes of a step. Charts are drawn on the
// dashboard and in reports. Invariant: `lines` is a function of its argument, and changes nothing in the training.
import type { MeasuredStep } from './metric';

/** The texts of a chart. */
export interface ChartTexts {
  /** Identifies the chart; saved layouts of dashboards contain it. */
  readonly name: string;
  /** Default: the name, with spaces instead of underscores. */
  readonly title?: string;
  /** Unit of the values; by default, it follows from the name of the first metric. `share`: percentages. */
  readonly unit?: 'number' | 'share' | 'seconds';
  /** What the chart shows, in the tooltip of its title. */
  readonly explanation?: string;
}

/** A chart of metrics that the run logs anyway. */
export interface ChartPlan extends ChartTexts {
  /**
   * Keys of metrics (docs/METRICS.md), one line each. `*` stands for a part of a key, such as the tag in the key of a
   * success, or the names in `thoughts/*`. Of a list of keys, only the first that the run has is drawn, with all metrics
   * that it matches.
   */
  readonly keys: readonly (string | readonly string[])[];
  /** Whether only the first entry of `keys` that the run has is drawn. */
  readonly first?: boolean;
  /** Whether the chart is shown even if the run has logged none of its metrics yet. */
  readonly always?: boolean;
  /**
   * Whether to omit the bands that reach from a minimum to a maximum. Such a band would make the y range so large that
   * the line would look flat.
   */
  readonly plain?: boolean;
  /** Whether keys that end in different names get separate charts, such as `pass@1` and `pass@8`. */
  readonly apart?: boolean;
}

/** A chart whose lines are computed in each step. Their values are metrics, `plugin_charts/<name>/<line>`. */
export interface ComputedChart extends ChartTexts {
  /**
   * Returns the value of each line in a step: finite numbers by the names of the lines. A line that is missing or
   * undefined has no value in this step. Without `unit`, the values are percentages if the name of the chart ends in
   * `_share`, `_ratio` or `_rate`.
   */
  lines(step: MeasuredStep): Readonly<Record<string, number | undefined>>;
}

/** The default export of a chart's file. */
export type ChartPlugin = { readonly kind: 'chart' } & (ChartPlan | ComputedChart);

/** Declares a chart: its metrics (`keys`), or a function that computes its lines (`lines`). */
export function defineChart(
  definition: (ChartPlan & { lines?: never }) | (ComputedChart & { keys?: never }),
): ChartPlugin {
  return { kind: 'chart', ...definition };
}
