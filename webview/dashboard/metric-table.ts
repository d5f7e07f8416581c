// Sortable tables of the metrics, for screen readers and for copying exact numbers: one for a chart (newest steps
// first) and one for the whole run (one metric per row).
import { h, setAttribute } from '../shared/dom';
import { formatChange, formatValue } from '../shared/format';
import { unitOf, type ChartGroup, type ChartSpec } from './catalogue';
import { lowerBound } from './curve';
import type { PlotContext } from './plot-data';
import type { SeriesStore } from './series';
import { changeOverTenSteps } from './transforms';

/** Maximum number of rows of a chart's table; the exported file has all rows. */
const shownRows = 200;

/** The sort order of a table: column and direction. */
export interface Sort {
  column: string;
  down: boolean;
}

/** Values of a chart's lines by step within the visible range, newest first; `before` is the table that it replaces. */
export function chartTable(
  spec: ChartSpec,
  context: Pick<PlotContext, 'store' | 'xs' | 'x'>,
  before?: HTMLElement,
): HTMLElement {
  const { store, xs, x } = context;
  const columns = spec.lines.flatMap(({ key, label, band }) => [
    { key, label },
    ...(band && 'low' in band
      ? [
          { key: band.low, label: spec.lines.length > 1 ? `${label} low` : 'low' },
          { key: band.high, label: spec.lines.length > 1 ? `${label} high` : 'high' },
        ]
      : []),
  ]);
  const values = columns.map(({ key }) => store.curve(key)?.values);
  const found: { step: number; cells: number[] }[] = [];
  let row = Math.min(store.length, lowerBound(xs, x.max + 1e-9)) - 1;
  for (; row >= 0 && xs[row] >= x.min && found.length < shownRows; row--) {
    const cells = values.map(column => column?.[row] ?? Number.NaN);
    if (!cells.every(Number.isNaN)) found.push({ step: store.steps[row], cells });
  }
  const more = row >= 0 && xs[row] >= x.min;
  let sort = (JSON.parse(before?.dataset.sort ?? 'null') as Sort | null) ?? { column: 'step', down: true };
  const body = h('tbody');
  const element = h('div', { class: 'table-scroll', tabindex: 0 });
  const heads = sortableHead(
    ['step', ...columns.map(column => column.label)],
    () => sort,
    next => {
      sort = next;
      fill();
    },
  );
  const fill = () => {
    element.dataset.sort = JSON.stringify(sort);
    const at = columns.findIndex(column => column.label === sort.column);
    const value = (each: (typeof found)[number]) => (at < 0 ? each.step : each.cells[at]);
    const sorted = [...found].sort((a, b) => compared(value(a), value(b), sort.down));
    body.replaceChildren(
      ...sorted.map(({ step, cells }) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, String(step)),
          ...cells.map(cell => numberCell(cell, formatValue(cell, spec.unit))),
        ),
      ),
    );
    heads.show(sort);
  };
  fill();
  const caption = more ? `latest ${shownRows} values; export all of them from the menu` : spec.title;
  element.append(
    h(
      'table',
      {},
      h('caption', { class: more ? 'muted' : 'visually-hidden' }, caption),
      h('thead', {}, heads.row),
      body,
    ),
  );
  return element;
}

const runColumns = ['metric', 'last', '10 steps', 'min', 'max', 'at step', 'meaning'];

/** One metric in the table of all metrics. */
interface Row {
  key: string;
  element: HTMLElement;
  values: Record<string, number | string>;
}

/**
 * Every metric of the run: latest value, change over ten steps, minimum, maximum, description. In groups unless sorted
 * by a column.
 */
export function runTable(
  groups: readonly ChartGroup[],
  store: SeriesStore,
  about: {
    search: string;
    meaning: (key: string) => string | undefined;
    sort: Sort | null;
    sorted: (sort: Sort) => void;
  },
): HTMLElement {
  const { search, sort, meaning } = about;
  const bodies = groups.map(group => {
    const keys = new Set(
      group.charts.flatMap(({ lines }) =>
        lines.flatMap(({ key, band }) => (band && 'low' in band ? [key, band.low, band.high] : [key])),
      ),
    );
    const rows = [...keys]
      .filter(key => key.toLowerCase().includes(search))
      .map(key => metricRow(key, store, meaning(key) ?? ''));
    return { group, rows };
  });
  const heads = sortableHead(runColumns, () => sort, about.sorted);
  heads.show(sort);
  return h(
    'table',
    { class: 'run-table' },
    h('caption', { class: 'visually-hidden' }, 'All metrics of the run'),
    h('thead', {}, heads.row),
    ...(sort
      ? [
          sortedBody(
            bodies.flatMap(({ rows }) => rows),
            sort,
          ),
        ]
      : bodies.map(
          ({ group, rows }) =>
            rows.length > 0 &&
            h(
              'tbody',
              {},
              h('tr', {}, h('th', { scope: 'rowgroup', colspan: runColumns.length }, group.title)),
              ...rows.map(row => row.element),
            ),
        )),
  );
}

function sortedBody(rows: readonly Row[], { column, down }: Sort): HTMLElement {
  const ordered = [...rows].sort((a, b) => compared(a.values[column], b.values[column], down));
  return h('tbody', {}, ...ordered.map(row => row.element));
}

function metricRow(key: string, store: SeriesStore, meaning: string): Row {
  const curve = store.curve(key);
  const unit = unitOf(key);
  const last = curve?.lastFinite() ?? -1;
  const extent = curve?.extent();
  const change = curve ? changeOverTenSteps(store.steps, curve) : Number.NaN;
  const newest = curve && last >= 0 ? curve.values[last] : Number.NaN;
  const values = {
    metric: key,
    last: newest,
    '10 steps': change,
    min: extent?.low ?? Number.NaN,
    max: extent?.high ?? Number.NaN,
    'at step': last < 0 ? Number.NaN : store.steps[last],
    meaning,
  };
  const cell = (value: number) => numberCell(value, formatValue(value, unit));
  const element = h(
    'tr',
    {},
    h('th', { scope: 'row' }, key),
    cell(values.last),
    h('td', { class: 'muted' }, Number.isFinite(change) ? formatChange(change, unit) : '–'),
    cell(values.min),
    cell(values.max),
    h('td', {}, last < 0 ? '–' : String(store.steps[last])),
    h('td', { class: 'meaning' }, meaning),
  );
  return { key, element, values };
}

const numberCell = (value: number, text: string): HTMLElement =>
  h('td', { title: Number.isFinite(value) ? String(value) : null }, text);

/** Column headers that sort on click: first descending, then ascending. */
function sortableHead(
  labels: readonly string[],
  present: () => Sort | null,
  sorted: (sort: Sort) => void,
): { row: HTMLElement; show(sort: Sort | null): void } {
  const heads = labels.map(label => {
    const press = h('button', { class: 'plain sort', type: 'button' }, label);
    press.addEventListener('click', () => {
      const now = present();
      sorted({ column: label, down: now?.column === label ? !now.down : true });
    });
    return h('th', { scope: 'col' }, press);
  });
  return {
    row: h('tr', {}, ...heads),
    show: sort =>
      heads.forEach((head, i) =>
        setAttribute(head, 'aria-sort', sort?.column !== labels[i] ? null : sort.down ? 'descending' : 'ascending'),
      ),
  };
}

/** Compares numbers by size and texts alphabetically; missing values come last in both directions. */
function compared(a: number | string, b: number | string, down: boolean): number {
  const missing = Number(typeof a === 'number' && Number.isNaN(a)) - Number(typeof b === 'number' && Number.isNaN(b));
  if (missing !== 0) return missing;
  const order = typeof a === 'string' || typeof b === 'string' ? String(b).localeCompare(String(a)) : a - b;
  return down ? -order : order;
}
