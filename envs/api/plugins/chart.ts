// The interface of charts of the workspace. A file whose default export is created by `defineChart` is listed in
// `workbench.plugins.charts`. Its lines are drawn together in one chart of the dashboard, in comparisons and in reports;
// their values are metrics. Invariant: `lines` is a function of its argument, and changes nothing in the training.
import type { MeasuredStep } from './metric';

/** The default export of a chart's file. */
export interface ChartPlugin {
  readonly kind: 'chart';
  /**
   * Name of the chart; underscores become spaces in its title. The keys of its lines are `plugin_charts/<name>/<line>`.
   * If the name ends in `_share`, `_ratio` or `_rate`, the values are shown as percentages.
   */
  name: string;
  /**
   * Returns the value of each line in a step: finite numbers by the names of the lines. A line that is missing or
   * undefined has no value in this step.
   */
  lines(step: MeasuredStep): Readonly<Record<string, number | undefined>>;
}

/** Declares a chart. */
export function defineChart(definition: Omit<ChartPlugin, 'kind'>): ChartPlugin {
  return { kind: 'chart', ...definition };
}
