// The user's arrangement of charts: pinned charts at the top, and the order within each group. Pure functions on chart
// ids.
import { pinnedAtFirst, type ChartGroup, type ChartSpec } from '../../charts/catalogue';
import type { DashboardSettings } from '../dashboard-settings';

/** Id of the group of pinned charts. */
export const pinnedGroup = 'pinned';

type Order = Pick<DashboardSettings, 'pinned' | 'order'>;

/**
 * Returns the groups, with their charts in the user's order. Pinned charts are moved to an additional group at the top.
 */
export function arranged(groups: readonly ChartGroup[], view: Order): ChartGroup[] {
  const pinned = view.pinned ?? pinnedAtFirst;
  const charts = groups.flatMap(group => group.charts);
  const top = pinned.flatMap(id => charts.find(chart => chart.id === id) ?? []);
  const rest = groups.map(group => ({
    ...group,
    charts: ordered(
      group.charts.filter(({ id }) => !pinned.includes(id)),
      view.order[group.id] ?? [],
    ),
  }));
  const first = top.length > 0 ? [{ id: pinnedGroup, title: 'Pinned', charts: top }] : [];
  return [...first, ...rest.filter(group => group.charts.length > 0)];
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
