// Every metric of the run as a table: latest value, change over ten steps, minimum, maximum, description. Rows are
// grouped; sorting by a column removes the grouping.
import { html, nothing, type TemplateResult } from 'lit';
import { formatChange, formatValue } from '../../shared/format';
import { unitOf } from '../../../extension/run-data/charts/catalogue';
import { metricName } from '../../../extension/run-data/charts/metric-names';
import type { ShownGroup } from '../charts/arrangement';
import type { SeriesStore } from '../../charts/metric-series';
import { compared, numberCell, sortableHead, type Sort } from './table-sorting';
import { changeOverTenSteps } from '../charts/recent-change';

const columns = ['metric', 'last', '10 steps', 'min', 'max', 'at step', 'meaning'];

/** A metric: the values for sorting, and the rendered row. */
interface Row {
  values: Record<string, number | string>;
  view: TemplateResult;
}

export interface RunTableOptions {
  /** Search text in lower case; only keys that contain it are listed. */
  search: string;
  meaning(key: string): string | undefined;
  sort: Sort | null;
  onSort(sort: Sort): void;
}

export function runTable(
  groups: readonly ShownGroup[],
  store: SeriesStore,
  { search, meaning, sort, onSort }: RunTableOptions,
): TemplateResult {
  const bodies = groups.map(({ title, charts, hidden }) => {
    const shown = [...charts, ...hidden].filter(({ panel }) => !panel);
    const keys = shown.flatMap(({ lines }) =>
      lines.flatMap(({ key, band }) => (band && 'low' in band ? [key, band.low, band.high] : [key])),
    );
    const found = [...new Set(keys)].filter(key =>
      [key, metricName(key)].some(text => text.toLowerCase().includes(search)),
    );
    return { title, rows: found.map(key => metricRow(key, store, meaning(key) ?? '')) };
  });
  return html`<table class="run-table">
    <caption class="visually-hidden">All metrics of the run</caption>
    <thead>${sortableHead(columns, sort, onSort)}</thead>
    ${
      sort
        ? sortedBody(
            bodies.flatMap(({ rows }) => rows),
            sort,
          )
        : bodies.map(groupBody)
    }
  </table>`;
}

function groupBody({ title, rows }: { title: string; rows: readonly Row[] }): TemplateResult | typeof nothing {
  if (rows.length === 0) return nothing;
  return html`<tbody>
    <tr><th scope="rowgroup" colspan=${columns.length}>${title}</th></tr>
    ${rows.map(({ view }) => view)}
  </tbody>`;
}

function sortedBody(rows: readonly Row[], { column, down }: Sort): TemplateResult {
  const ordered = [...rows].sort((a, b) => compared(a.values[column], b.values[column], down));
  return html`<tbody>${ordered.map(({ view }) => view)}</tbody>`;
}

function metricRow(key: string, store: SeriesStore, meaning: string): Row {
  const curve = store.curve(key);
  const unit = unitOf(key);
  const row = curve?.lastFinite() ?? -1;
  const extent = curve?.extent();
  const change = curve ? changeOverTenSteps(store.steps, curve) : Number.NaN;
  const last = curve && row >= 0 ? curve.values[row] : Number.NaN;
  const [min, max] = [extent?.low ?? Number.NaN, extent?.high ?? Number.NaN];
  const step = row < 0 ? Number.NaN : store.steps[row];
  const cell = (value: number): TemplateResult => numberCell(value, formatValue(value, unit));
  const view = html`<tr>
    <th scope="row" title=${metricName(key)}>${key}</th>
    ${cell(last)}
    <td class="muted">${Number.isFinite(change) ? formatChange(change, unit) : '–'}</td>
    ${cell(min)}${cell(max)}
    <td>${row < 0 ? '–' : step}</td>
    <td class="meaning">${meaning}</td>
  </tr>`;
  return { values: { metric: key, last, '10 steps': change, min, max, 'at step': step, meaning }, view };
}
