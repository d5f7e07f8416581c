// The user's arrangement of charts: charts pinned to the top, and moved within their group. Pure functions on ids.
import { pinnedAtFirst, type ChartGroup, type ChartSpec } from '../charts/catalogue';
import type { DashboardSettings } from './settings';

/** The group of the pinned charts. */
export const pinnedGroup = 'pinned';

type Order = Pick<DashboardSettings, 'pinned' | 'order'>;

/** The groups, preceded by a group of the pinned charts, each in the user's order. */
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

/** The settings after pinning a chart, or unpinning it if it is pinned. */
export function pinToggled(view: Order, id: string): Pick<Order, 'pinned'> {
  const pinned = view.pinned ?? pinnedAtFirst;
  return { pinned: pinned.includes(id) ? pinned.filter(other => other !== id) : [...pinned, id] };
}

/** The settings after moving a chart to another index (from 0) among those shown in its group. */
export function orderAfterMove(view: Order, group: ChartGroup, id: string, index: number): Partial<Order> {
  const others = group.charts.map(chart => chart.id).filter(other => other !== id);
  const ids = [...others.slice(0, index), id, ...others.slice(index)];
  if (group.id !== pinnedGroup) return { order: { ...view.order, [group.id]: ids } };
  // Pinned charts that this run does not have stay pinned, after the others.
  return { pinned: [...ids, ...(view.pinned ?? pinnedAtFirst).filter(other => !ids.includes(other))] };
}

/** Charts in the order of a list of ids; charts that it does not contain follow in their original order. */
function ordered(charts: ChartSpec[], ids: readonly string[]): ChartSpec[] {
  const rank = (id: string) => (ids.includes(id) ? ids.indexOf(id) : ids.length);
  return [...charts].sort((a, b) => rank(a.id) - rank(b.id));
}
