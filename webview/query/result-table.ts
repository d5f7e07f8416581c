// The table of a query's result. The page shows the first rows; the CSV file contains all.
import { html, nothing, type TemplateResult } from 'lit';
import type { QueryResult, QueryValue } from '../../extension/protocol/query-result';
import { formatNumber } from '../shared/format';
import { numericColumns } from './state';

/** Rows in the page; more would make typing slow. */
const mostRows = 500;
/** Longest text of a cell; its tooltip contains more. */
const longestCell = 200;

export function resultTable(result: QueryResult): TemplateResult {
  const { columns, rows } = result;
  const numeric = new Set(numericColumns(result));
  const classOf = (i: number): string | typeof nothing => (numeric.has(i) ? 'number' : nothing);
  return html`<section class="query-table" tabindex="0" role="region" aria-label="Result">
    ${
      rows.length > mostRows
        ? html`<p class="muted">The first ${mostRows} of ${rows.length} rows; the CSV file contains all.</p>`
        : nothing
    }
    <table>
      <thead>
        <tr
          >${columns.map(({ name, type }, i) => html`<th scope="col" class=${classOf(i)} title=${type}>${name}</th>`)}</tr
        >
      </thead>
      <tbody>
        ${rows
          .slice(0, mostRows)
          .map(row => html`<tr>${row.map((value, i) => html`<td class=${classOf(i)}>${cell(value)}</td>`)}</tr>`)}
      </tbody>
    </table>
  </section>`;
}

function cell(value: QueryValue): unknown {
  if (value === null) return html`<span class="muted">null</span>`;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : formatNumber(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= longestCell) return text;
  return html`<span title=${text.slice(0, 4000)}>${text.slice(0, longestCell)}…</span>`;
}
