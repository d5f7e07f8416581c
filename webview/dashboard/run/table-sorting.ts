// Sorting of a table's rows by a column, and the header in which the user selects this column.
import { html, nothing, type TemplateResult } from 'lit';

export interface Sort {
  readonly column: string;
  readonly down: boolean;
}

/** Renders a row of column headers. A click sorts by the column: first descending, then ascending. */
export function sortableHead(
  labels: readonly string[],
  sort: Sort | null,
  onSort: (sort: Sort) => void,
): TemplateResult {
  const heads = labels.map(label => {
    const isChosen = sort?.column === label;
    const order = !isChosen ? nothing : sort.down ? 'descending' : 'ascending';
    const choose = (): void => onSort({ column: label, down: isChosen ? !sort.down : true });
    return html`<th scope="col" aria-sort=${order}>
      <button class="plain sort" type="button" @click=${choose}>${label}</button>
    </th>`;
  });
  return html`<tr> ${heads} </tr>`;
}

/** Compares numbers by size and texts alphabetically; missing values come last in both directions. */
export function compared(a: number | string, b: number | string, down: boolean): number {
  const missing = Number(typeof a === 'number' && Number.isNaN(a)) - Number(typeof b === 'number' && Number.isNaN(b));
  if (missing !== 0) return missing;
  const order = typeof a === 'string' || typeof b === 'string' ? String(b).localeCompare(String(a)) : a - b;
  return down ? -order : order;
}

/** Renders a table cell with a formatted number; the tooltip shows all digits. */
export const numberCell = (value: number, text: string): TemplateResult =>
  html`<td title=${Number.isFinite(value) ? String(value) : nothing}>${text}</td>`;
