// Tables behind the charts: what a screen reader reads, and where exact numbers can be copied from. One for a chart (newest steps
// first) and one for the whole run (a metric a row).
import { h } from '../shared/dom';
import { formatChange, formatValue } from '../shared/format';
import { unitOf, type ChartGroup, type ChartSpec } from './catalogue';
import type { SeriesStore } from './series';
import { changeOverTenSteps, extent, lastFinite } from './transforms';

/** Rows of a chart's table; metrics.jsonl has them all. */
const shownRows = 200;

/** Values of a chart's lines by step, newest first. */
export function chartTable(spec: ChartSpec, store: SeriesStore): HTMLElement {
  const columns = [
    ...spec.lines,
    ...(spec.band
      ? [
          { key: spec.band.low, label: 'min' },
          { key: spec.band.high, label: 'max' },
        ]
      : []),
  ].map(line => ({ ...line, values: store.column(line.key) }));
  const rows: HTMLElement[] = [];
  let row = store.length - 1;
  for (; row >= 0 && rows.length < shownRows; row--) {
    const cells = columns.map(({ values }) => values?.[row] ?? Number.NaN);
    if (cells.every(Number.isNaN)) continue;
    const texts = cells.map(value =>
      h('td', { title: Number.isNaN(value) ? null : String(value) }, formatValue(value, spec.unit)),
    );
    rows.push(h('tr', {}, h('th', { scope: 'row' }, String(store.steps[row])), ...texts));
  }
  const head = ['step', ...columns.map(column => column.label)].map(label => h('th', { scope: 'col' }, label));
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0 },
    h(
      'table',
      {},
      h(
        'caption',
        { class: row >= 0 ? 'muted' : 'visually-hidden' },
        row >= 0 ? `newest ${shownRows} values` : spec.title,
      ),
      h('thead', {}, h('tr', {}, ...head)),
      h('tbody', {}, ...rows),
    ),
  );
}

/** Every metric of the run: newest value, change over ten steps, smallest, largest, meaning. */
export function runTable(
  groups: readonly ChartGroup[],
  store: SeriesStore,
  search: string,
  meaning: (key: string) => string | undefined,
): HTMLElement {
  const head = ['metric', 'last', '10 steps', 'min', 'max', 'at step', 'meaning'];
  const bodies = groups.map(group => {
    const keys = new Set(
      group.charts.flatMap(({ lines, band }) => [
        ...lines.map(line => line.key),
        ...(band ? [band.low, band.high] : []),
      ]),
    );
    const rows = [...keys]
      .filter(key => key.toLowerCase().includes(search))
      .map(key => metricRow(key, store, meaning(key) ?? ''));
    return (
      rows.length > 0 &&
      h('tbody', {}, h('tr', {}, h('th', { scope: 'rowgroup', colspan: head.length }, group.title)), ...rows)
    );
  });
  return h(
    'table',
    { class: 'run-table' },
    h('caption', { class: 'visually-hidden' }, 'All metrics of the run'),
    h('thead', {}, h('tr', {}, ...head.map(label => h('th', { scope: 'col' }, label)))),
    ...bodies,
  );
}

function metricRow(key: string, store: SeriesStore, meaning: string): HTMLElement {
  const values = store.column(key) ?? new Float64Array(0);
  const unit = unitOf(key);
  const last = lastFinite(values);
  const range = extent([values]);
  const cell = (value: number) =>
    h('td', { title: Number.isFinite(value) ? String(value) : null }, formatValue(value, unit));
  const change = changeOverTenSteps(store.steps, values);
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, key),
    cell(last < 0 ? Number.NaN : values[last]),
    h('td', { class: 'muted' }, Number.isFinite(change) ? formatChange(change, unit) : '–'),
    cell(range?.low ?? Number.NaN),
    cell(range?.high ?? Number.NaN),
    h('td', {}, last < 0 ? '–' : String(store.steps[last])),
    h('td', { class: 'meaning' }, meaning),
  );
}
