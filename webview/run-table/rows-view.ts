// The table of runs. Only the rows on screen exist in the document; a blank row above and one below take the place of
// the others, so all rows have the same height. The check box and the name stay in view while the table scrolls
// horizontally.
import { html, nothing, type TemplateResult } from 'lit';
import { ref } from 'lit/directives/ref.js';
import { repeat } from 'lit/directives/repeat.js';
import type { RunSummary } from '../../extension/protocol/page-state';
import { parseColumn, type RunColumn } from '../../extension/run-data/table-columns';
import { parseSortKey } from '../../extension/run-data/run-order';
import { openMenu, type MenuItem } from '../components/menu';
import { swatchButton } from '../components/run-swatch';
import { counted } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import { progressOf } from '../../extension/run-data/run-progress';
import type { RunTableActions } from './actions';
import { formatCell, headOf, isNumeric } from './cells';
import { cellEditor } from './cell-editor';
import { cellOf, listingOf, type TableItem } from './listing';
import { shownColumns, type RunTableState } from './state';

/** Height of a row in pixels, as in run-table.css. */
const rowHeight = 28;
/** Number of rows drawn above and below the rows on screen. */
const margin = 12;
const checkWidth = 32;

interface Shown {
  id: string;
  column: RunColumn;
}

export function rowsView(state: RunTableState, actions: RunTableActions): TemplateResult {
  const columns = shownColumns(state).flatMap((id): Shown[] => {
    const column = parseColumn(id);
    return column ? [{ id, column }] : [];
  });
  const widths = [
    checkWidth,
    ...['name', ...columns.map(({ id }) => id)].map(id => headOf(parseColumn(id)!, {}).width),
  ];
  const { items } = listingOf(state);
  const { top, rows } = state.viewport;
  const first = Math.max(0, Math.min(top, items.length - rows) - margin);
  const last = Math.min(items.length, top + rows + margin);
  const blank = (count: number): TemplateResult | typeof nothing =>
    count > 0
      ? html`<tr class="blank" aria-hidden="true"
          ><td style="height:${count * rowHeight}px" colspan=${widths.length}></td
        ></tr>`
      : nothing;
  const see = (element: HTMLElement): void =>
    actions.see({
      top: Math.floor(element.scrollTop / rowHeight),
      rows: Math.ceil(element.clientHeight / rowHeight) || state.viewport.rows,
    });
  const shown = items.slice(first, last).map((item, i) => ({ item, index: first + i }));
  return html`<div
    class="table-scroll"
    tabindex="0"
    role="region"
    aria-label="Runs"
    @scroll=${({ currentTarget }: Event) => see(currentTarget as HTMLElement)}
    ${ref(element => queueMicrotask(() => element && see(element as HTMLElement)))}
  >
    <table
      class="run-table"
      aria-rowcount=${items.length + 1}
      style="width:${widths.reduce((sum, width) => sum + width, 0)}px"
    >
      <colgroup> ${widths.map(width => html`<col style="width:${width}px" />`)} </colgroup>
      <thead>
        <tr aria-rowindex="1"
          >${selectAll(state, actions)}${head({ id: 'name', column: { kind: 'field', field: 'name' } }, state, actions)}${columns.map(
            each => head(each, state, actions),
          )}</tr
        >
      </thead>
      <tbody>
        ${blank(first)}${repeat(
          shown,
          ({ item }) => (item.kind === 'run' ? item.run.folder : `group ${item.value}`),
          ({ item, index }) => row(item, index, columns, state, actions),
        )}${blank(items.length - last)}
      </tbody>
    </table>
  </div>`;
}

function selectAll({ selected, ...state }: RunTableState, actions: RunTableActions): TemplateResult {
  const { runs } = listingOf({ selected, ...state });
  const all = runs.length > 0 && runs.every(({ folder }) => selected.has(folder));
  return html`<th class="check" scope="col"
    ><input
      type="checkbox"
      aria-label="Select all runs"
      .checked=${all}
      .indeterminate=${!all && selected.size > 0}
      @change=${({ target }: Event) => actions.selectAll((target as HTMLInputElement).checked)}
  /></th>`;
}

function head({ id, column }: Shown, state: RunTableState, actions: RunTableActions): TemplateResult {
  const { title, detail, hint } = headOf(column, state.meanings);
  const { sort, group } = state.settings.layout;
  const at = sort.findIndex(text => parseSortKey(text).by === id);
  const key = at < 0 ? null : parseSortKey(sort[at]);
  const order = key === null ? 'none' : key.down ? 'descending' : 'ascending';
  const mark = key === null ? '' : `${key.down ? '↓' : '↑'}${sort.length > 1 ? at + 1 : ''}`;
  const items: (MenuItem | null)[] = [
    { label: 'Sort low to high', run: () => actions.setSort([id]) },
    { label: 'Sort high to low', run: () => actions.setSort([`-${id}`]) },
    group === id
      ? { label: 'Ungroup', run: () => actions.group(null) }
      : { label: 'Group by this column', run: () => actions.group(id) },
    ...(id === 'name'
      ? []
      : [
          null,
          { label: 'Move left', run: () => actions.moveColumn(id, -1) },
          { label: 'Move right', run: () => actions.moveColumn(id, 1) },
          { label: 'Remove column', run: () => actions.showColumn(id, false) },
        ]),
  ];
  return html`<th scope="col" class=${classOf(id, column)} aria-sort=${order} title=${hint}
    ><div class="head"
      ><button class="plain head-sort" type="button" @click=${({ shiftKey }: MouseEvent) => actions.sort(id, shiftKey)}
        ><span class="head-title"
          ><span class="head-name">${title}</span><span class="head-mark" aria-hidden="true">${mark}</span></span
        ><span class="head-detail muted">${detail}</span></button
      ><button
        class="plain head-menu"
        type="button"
        aria-haspopup="menu"
        aria-label=${`Column ${title} ${detail}`}
        @click=${(event: Event) => openMenu(event.currentTarget as HTMLElement, `Column ${title}`, items)}
        >⋯</button
      ></div
    ></th
  >`;
}

const classOf = (id: string, column: RunColumn): string =>
  id === 'name' ? 'name' : isNumeric(column) ? 'number' : column.kind === 'config' ? 'setting' : 'text';

function row(
  item: TableItem,
  index: number,
  columns: readonly Shown[],
  state: RunTableState,
  actions: RunTableActions,
): TemplateResult {
  return item.kind === 'group'
    ? groupRow(item, index, columns, state, actions)
    : runRow(item.run, index, columns, state, actions);
}

function groupRow(
  { value, runs, folded }: TableItem & { kind: 'group' },
  index: number,
  columns: readonly Shown[],
  state: RunTableState,
  actions: RunTableActions,
): TemplateResult {
  const group = parseColumn(state.settings.layout.group ?? 'name')!;
  const means = columns.map(({ id, column }) => {
    if (!isNumeric(column)) return html`<td></td>`;
    const values = runs.map(run => cellOf(state.cells, run, id)).filter(cell => typeof cell === 'number');
    const mean = values.reduce((sum, cell) => sum + cell, 0) / values.length;
    const title = `Mean of ${counted(values.length, 'run')}`;
    return html`<td class="number" title=${title}>${values.length > 0 ? formatCell(mean, column) : ''}</td>`;
  });
  return html`<tr class="group" aria-rowindex=${index + 2}
    ><th colspan="2" scope="rowgroup" class="name"
      ><button class="plain" type="button" aria-expanded=${String(!folded)} @click=${() => actions.fold(value)}
        ><span class="fold-mark" aria-hidden="true">${folded ? '▸' : '▾'}</span>${
          value === null ? `no ${headOf(group, {}).title.toLowerCase()}` : formatCell(value, group)
        }<span class="muted"> ${counted(runs.length, 'run')}</span></button
      ></th
    >${means}</tr
  >`;
}

function runRow(
  run: RunSummary,
  index: number,
  columns: readonly Shown[],
  state: RunTableState,
  actions: RunTableActions,
): TemplateResult {
  const isSelected = state.selected.has(run.folder);
  const problem = run.problem ?? state.problems.get(run.folder);
  return html`<tr aria-rowindex=${index + 2} aria-selected=${String(isSelected)} class=${run.archived ? 'archived' : ''}
    ><td class="check"
      ><input
        type="checkbox"
        aria-label=${`Select ${run.name}`}
        .checked=${isSelected}
        @click=${(event: MouseEvent) =>
          actions.select(run.folder, (event.currentTarget as HTMLInputElement).checked, event.shiftKey)} /></td
    ><th scope="row" class="name" title=${problem ?? `${run.name}\n${run.id}`}
      >${swatchButton(run, run.name, colour => actions.recolour(run.folder, colour))}<button
        class="plain link"
        type="button"
        @click=${() => actions.act('dashboard', [run.folder])}
        >${run.name}</button
      >${problem === undefined ? nothing : html`<span class="problem" aria-label=${problem}> !</span>`}</th
    >${columns.map(each => cell(run, each, state, actions))}</tr
  >`;
}

function cell(run: RunSummary, { id, column }: Shown, state: RunTableState, actions: RunTableActions): TemplateResult {
  if (column.kind === 'field') {
    const { field } = column;
    if (field === 'state') {
      const word = displayStatus(run);
      return html`<td class="text"
        ><span class="status" data-standing=${word}><span class="dot" aria-hidden="true"></span>${word}</span></td
      >`;
    }
    if (field === 'progress') {
      const { done, of, unit } = progressOf(run.status);
      return html`<td class="number" title=${`${unit}s`}
        >${done}<span class="muted"> / ${of > 0 ? of : '–'}</span></td
      >`;
    }
    if (field === 'tags' || field === 'notes') {
      const { editing } = state;
      if (editing?.folder === run.folder && editing.field === field) return cellEditor(run, editing, actions);
      const words = field === 'tags' ? (run.tags ?? []).join(' ') : (run.notes ?? '');
      const text = field === 'tags' ? (run.tags ?? []).map(tag => html`<span class="tag">${tag}</span> `) : words;
      const isEmpty = words === '';
      return html`<td class="text editable"
        ><button
          class="plain"
          type="button"
          title=${field === 'notes' ? (run.notes ?? nothing) : nothing}
          aria-label=${`${isEmpty ? 'add' : words}: edit ${field} of ${run.name}`}
          @click=${() => actions.edit(run.folder, field)}
          >${isEmpty ? html`<span class="muted add">add</span>` : text}</button
        ></td
      >`;
    }
  }
  const value = cellOf(state.cells, run, id);
  const isKnown = column.kind === 'field' || state.cells.get(run.folder)?.has(id);
  const text = isKnown ? formatCell(value, column) : '';
  return html`<td class=${classOf(id, column)} title=${value === null ? nothing : String(value)}>${text}</td>`;
}
