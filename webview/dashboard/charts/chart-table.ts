// The values of a chart as a table, for screen readers and for copying exact numbers.
import { html, type TemplateResult } from 'lit';
import { formatValue } from '../../shared/format';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { lowerBound } from '../../../extension/run-data/charts/curve';
import type { ChartContext } from './chart-context';
import { compared, numberCell, sortableHead, type Sort } from '../run/table-sorting';

/** Maximum number of rows in the table; the exported file contains all rows. */
const shownRows = 200;

export const newestFirst: Sort = { column: 'step', down: true };

/**
 * Renders a table of the newest values of a chart's lines within the visible range: one row per step, sorted by `sort`.
 */
export function chartTable(
  spec: ChartSpec,
  { store, xs, x }: Pick<ChartContext, 'store' | 'xs' | 'x'>,
  sort: Sort,
  onSort: (sort: Sort) => void,
): TemplateResult {
  const columns = columnsOf(spec);
  const values = columns.map(({ key }) => store.curve(key)?.values);
  const found: { step: number; cells: number[] }[] = [];
  let row = Math.min(store.length, lowerBound(xs, x.max + 1e-9)) - 1;
  for (; row >= 0 && xs[row] >= x.min && found.length < shownRows; row--) {
    const cells = values.map(column => column?.[row] ?? Number.NaN);
    if (!cells.every(Number.isNaN)) found.push({ step: store.steps[row], cells });
  }
  const more = row >= 0 && xs[row] >= x.min;
  const at = columns.findIndex(column => column.label === sort.column);
  const value = ({ step, cells }: (typeof found)[number]): number => (at < 0 ? step : cells[at]);
  const rows = found
    .sort((a, b) => compared(value(a), value(b), sort.down))
    .map(({ step, cells }) => {
      const numbers = cells.map(cell => numberCell(cell, formatValue(cell, spec.unit)));
      return html`<tr><th scope="row">${step}</th>${numbers}</tr>`;
    });
  const caption = more ? `latest ${shownRows} values; the menu exports all values` : spec.title;
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <caption class=${more ? 'muted' : 'visually-hidden'}>${caption}</caption>
      <thead>${sortableHead(['step', ...columns.map(({ label }) => label)], sort, onSort)}</thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`;
}

/**
 * Returns the columns of the table: the lines of a chart, and the edges of each band whose edges are logged metrics.
 */
function columnsOf({ lines }: ChartSpec): { key: string; label: string }[] {
  return lines.flatMap(({ key, label, band }) => {
    if (!band || !('low' in band)) return [{ key, label }];
    const name = (edge: string): string => (lines.length > 1 ? `${label} ${edge}` : edge);
    return [
      { key, label },
      { key: band.low, label: name('low') },
      { key: band.high, label: name('high') },
    ];
  });
}
