// Results of an evaluation as a table: an evaluation has no steps, so charts would show a single dot each. Success with
// its 95 % interval (Wilson) over the episodes, other metrics with their bounds.
import { h } from '../shared/dom';
import { formatValue } from '../shared/format';
import type { ChartGroup, ChartLine } from './catalogue';
import { wilson } from './plot-data';
import type { SeriesStore } from './series';

const columns = ['metric', 'value', '95 % or bounds', 'meaning'];

export function evaluationTable(
  groups: readonly ChartGroup[],
  store: SeriesStore,
  meaning: (key: string) => string | undefined,
): HTMLElement {
  const bodies = groups.map(({ title, charts }) => {
    const rows = charts.flatMap(({ unit, lines }) =>
      lines.map(({ key, band }) => {
        const bounds = boundsOf(key, band, store);
        const text = bounds && `${formatValue(bounds.low, unit)} … ${formatValue(bounds.high, unit)}`;
        const value = newest(store, key);
        return h(
          'tr',
          {},
          h('th', { scope: 'row' }, key),
          h('td', { title: Number.isFinite(value) ? String(value) : null }, formatValue(value, unit)),
          h('td', {}, text ?? ''),
          h('td', { class: 'meaning' }, meaning(key) ?? ''),
        );
      }),
    );
    return (
      rows.length > 0 &&
      h('tbody', {}, h('tr', {}, h('th', { scope: 'rowgroup', colspan: columns.length }, title)), ...rows)
    );
  });
  const heads = columns.map(label => h('th', { scope: 'col' }, label));
  return h(
    'table',
    { class: 'run-table' },
    h('caption', { class: 'visually-hidden' }, 'Evaluation results'),
    h('thead', {}, h('tr', {}, ...heads)),
    ...bodies,
  );
}

function boundsOf(key: string, band: ChartLine['band'], store: SeriesStore): { low: number; high: number } | undefined {
  if (!band) return undefined;
  if ('low' in band) return { low: newest(store, band.low), high: newest(store, band.high) };
  const [share, episodes] = [newest(store, key), newest(store, band.episodes)];
  return Number.isFinite(share) && episodes > 0 ? wilson(share, episodes) : undefined;
}

function newest(store: SeriesStore, key: string): number {
  const curve = store.curve(key);
  const row = curve?.lastFinite() ?? -1;
  return curve && row >= 0 ? curve.values[row] : Number.NaN;
}
