// Results of an evaluation as a table. Charts are not used, because an evaluation has no steps and each chart would
// show a single dot. Success is shown with its 95 % interval (Wilson) over the episodes. Other metrics are shown with
// their minimum and maximum.
import { html, nothing, type TemplateResult } from 'lit';
import { formatValue, type Unit } from '../../shared/format';
import type { ChartLine } from '../../../extension/run-data/charts/chart-lines';
import type { ShownGroup } from '../charts/arrangement';
import { wilson } from '../../../extension/run-data/charts/plot-data';
import type { SeriesStore } from '../../charts/metric-series';
import { numberCell } from './table-sorting';

const columns = ['metric', 'value', '95 % interval or range', 'meaning'];

export function evaluationTable(
  groups: readonly ShownGroup[],
  store: SeriesStore,
  meaning: (key: string) => string | undefined,
): TemplateResult {
  const bodies = groups.map(({ title, charts, hidden }) => {
    const rows = [...charts, ...hidden].flatMap(({ unit, lines }) =>
      lines.map(line => metricRow(line, unit, store, meaning)),
    );
    if (rows.length === 0) return nothing;
    return html`<tbody>
      <tr><th scope="rowgroup" colspan=${columns.length}>${title}</th></tr>
      ${rows}
    </tbody>`;
  });
  return html`<table class="run-table">
    <caption class="visually-hidden">Evaluation results</caption>
    <thead><tr>${columns.map(label => html`<th scope="col">${label}</th>`)}</tr></thead>
    ${bodies}
  </table>`;
}

function metricRow(
  { key, band }: ChartLine,
  unit: Unit,
  store: SeriesStore,
  meaning: (key: string) => string | undefined,
): TemplateResult {
  const bounds = boundsOf(key, band, store);
  const value = newest(store, key);
  return html`<tr
    ><th scope="row">${key}</th>
    ${numberCell(value, formatValue(value, unit))}
    <td>${bounds ? `${formatValue(bounds.low, unit)} … ${formatValue(bounds.high, unit)}` : ''}</td>
    <td class="meaning">${meaning(key) ?? ''}</td>
  </tr>`;
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
