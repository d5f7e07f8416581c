// The user's arrangement of charts: pinned charts at the top, and the order within each group. Pure functions on chart
// ids.
import type { RedundantColumns } from '../../../extension/run-data/redundant-columns';
import { keysOf, type ChartGroup, type ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { pinnedAtFirst } from '../../../extension/run-data/charts/chart-plan';
import { overviewOf, type OverviewSettings } from '../../../extension/run-data/charts/overview';
import type { DashboardSettings } from '../dashboard-settings';

/** Id of the overview: the group of pinned charts. */
export const pinnedGroup = 'pinned';

type Order = Pick<DashboardSettings, 'pinned' | 'order'>;

/** A group as the page shows it. */
export interface ShownGroup extends ChartGroup {
  /** Charts that show nothing new, because their metrics are constant or equal to metrics of other charts. */
  hidden: ChartSpec[];
}

export interface Arrangement extends Order, Omit<OverviewSettings, keyof Order> {
  /** Whether redundant charts are shown nevertheless. */
  readonly redundant: boolean;
}

/**
 * Returns the groups, with their charts in the user's order. The first group is the overview: the pinned charts, the
 * validation's pass@k, and the charts of metrics with an alarm while there is room. In the other groups, charts with
 * only constant or duplicate metrics are hidden, unless the user or a plug-in has listed these metrics.
 */
export function arranged(groups: readonly ChartGroup[], view: Arrangement): ShownGroup[] {
  const charts = groups.flatMap(group => group.charts);
  const top = overviewOf(charts, view);
  const isRedundant = redundancy(top, view.columns);
  const rest = groups.map(group => {
    const own = ordered(
      group.charts.filter(chart => !top.includes(chart)),
      view.order[group.id] ?? [],
    );
    const hidden = view.redundant ? [] : own.filter(chart => !chart.panel && !chart.listed && isRedundant(chart));
    return { ...group, charts: own.filter(chart => !hidden.includes(chart)), hidden };
  });
  const first = top.length > 0 ? [{ id: pinnedGroup, title: 'Overview', charts: top, hidden: [] }] : [];
  return [...first, ...rest.filter(group => group.charts.length + group.hidden.length > 0)];
}

/**
 * Returns a function that tells whether a chart has only constant or duplicate metrics. Of several equal metrics, the
 * one whose chart is asked about first counts as new; the charts of `shown` come before all others.
 */
function redundancy(shown: readonly ChartSpec[], { constant, equal }: RedundantColumns): (chart: ChartSpec) => boolean {
  const setOf = new Map(equal.flatMap((keys, i) => keys.map(key => [key, i] as const)));
  const seen = new Set(shown.flatMap(keysOf).map(key => setOf.get(key)));
  return chart => {
    const keys = chart.lines.flatMap(({ key, band }) => (band && 'low' in band ? [key, band.low, band.high] : [key]));
    const isOld = (key: string): boolean => key in constant || (setOf.has(key) && seen.has(setOf.get(key)));
    if (keys.length > 0 && keys.every(isOld)) return true;
    for (const key of keys) seen.add(setOf.get(key));
    return false;
  };
}

/** Returns the settings after a chart has been pinned or unpinned. */
export function pinToggled(view: Order, id: string): Pick<Order, 'pinned'> {
  const pinned = view.pinned ?? pinnedAtFirst;
  return { pinned: pinned.includes(id) ? pinned.filter(other => other !== id) : [...pinned, id] };
}

/**
 * Returns the settings after a chart has been moved to another position among the displayed charts of its group;
 * `index` is 0-based.
 */
export function orderAfterMove(view: Order, group: ChartGroup, id: string, index: number): Partial<Order> {
  const others = group.charts.map(chart => chart.id).filter(other => other !== id);
  const ids = [...others.slice(0, index), id, ...others.slice(index)];
  if (group.id !== pinnedGroup) return { order: { ...view.order, [group.id]: ids } };
  // If this run lacks a pinned chart, the chart stays pinned and moves to the end of the list.
  return { pinned: [...ids, ...(view.pinned ?? pinnedAtFirst).filter(other => !ids.includes(other))] };
}

/** Charts in the order of a list of ids; charts that are not in the list follow in their original order. */
function ordered(charts: ChartSpec[], ids: readonly string[]): ChartSpec[] {
  const rank = (id: string) => (ids.includes(id) ? ids.indexOf(id) : ids.length);
  return [...charts].sort((a, b) => rank(a.id) - rank(b.id));
}
