// The overview of a run: the few charts that show first whether it is healthy. The dashboard and the report show it.
import type { RedundantColumns } from '../redundant-columns';
import type { RunEvent } from '../run-events';
import { keysOf, type ChartSpec } from './catalogue';
import { overviewSize, pinnedAtFirst } from './chart-plan';

export interface OverviewSettings {
  /** Ids of the charts that the user has pinned; null or undefined if the user has pinned and unpinned none. */
  readonly pinned?: readonly string[] | null | undefined;
  /** Keys of metrics with an alarm, the latest first; their charts are added to the overview. */
  readonly alarmed: readonly string[];
  readonly columns: RedundantColumns;
}

/**
 * Returns the charts of the overview: the pinned charts, the validation's pass@k, and the charts of metrics with an
 * alarm while there is room.
 */
export function overviewOf(charts: readonly ChartSpec[], { pinned, alarmed, columns }: OverviewSettings): ChartSpec[] {
  const top = (pinned ?? pinnedAtFirst).flatMap(id => charts.find(chart => chart.id === id) ?? []);
  const isNew = ({ lines }: ChartSpec): boolean =>
    lines.some(({ key }) => !(key in columns.constant) && !columns.equal.some(keys => keys.includes(key)));
  const validation = charts.find(
    chart => /^pass@/.test(chart.id) && chart.lines.some(({ key }) => key.startsWith('val-env/')) && isNew(chart),
  );
  const added = alarmed.map(key => charts.find(chart => !chart.panel && !chart.listed && keysOf(chart).includes(key)));
  for (const chart of [...(pinned ? [] : [validation]), ...added])
    if (chart && top.length < overviewSize && !top.includes(chart)) top.push(chart);
  return top;
}

/** Returns the keys of the metrics that raised an alarm, the latest alarm first. */
export function alarmedKeys(events: readonly RunEvent[]): string[] {
  const keys = events.flatMap(({ kind, data }) =>
    kind === 'alarm' && typeof data?.metric === 'string' ? [data.metric] : [],
  );
  return [...new Set(keys.reverse())];
}
