// The bar of the run table: filter, columns, saved views and export; below, the number of runs or, while runs are
// selected, the actions on them. Both lines have a fixed height, so that the rows do not move.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { button, link, textField } from '../components/controls';
import { openMenu, type MenuItem } from '../components/menu';
import { counted } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import type { RunTableActions } from './actions';
import { headOf } from './cells';
import { listingOf, parsedFilter } from './listing';
import { firstLayout, sameLayout, type RunTableState } from './state';
import { parseColumn } from '../../extension/run-data/table-columns';

export function topBar(state: RunTableState, actions: RunTableActions): TemplateResult {
  const { layout } = state.settings;
  const { chooser } = state;
  return html`<header class="table-bar">
    <div class="bar-row">
      ${textField({
        label: 'Filter runs',
        placeholder: 'Filter, such as tag:paper state:finished success>0.5',
        class: 'filter',
        value: layout.filter,
        onInput: actions.filter,
      })}
      ${button({
        label: 'Columns',
        icon: 'table',
        pressed: chooser !== null,
        onClick: () => actions.choose(chooser ? null : { search: '', step: 1 }),
      })}
      ${button({ label: viewLabel(state), hasPopup: true, onClick: event => openViews(event, state, actions) })}
      ${button({ label: 'Export as CSV', icon: 'export', iconOnly: true, onClick: actions.exportCsv })}
      <label class="archived-label"
        ><input
          type="checkbox"
          .checked=${layout.archived}
          @change=${({ target }: Event) => actions.showArchived((target as HTMLInputElement).checked)}
        />Archived</label
      >
    </div>
    <div class="bar-row facts-row"
      >${selectedRuns(state).length > 0 ? selectionBar(state, actions) : facts(state, actions)}</div
    >
  </header>`;
}

const viewLabel = ({ settings, views }: RunTableState): string => {
  const view = views.find(({ name }) => name === settings.view);
  if (!view) return 'Views';
  return sameLayout(view, settings.layout) ? `View: ${view.name}` : `View: ${view.name}, changed`;
};

function openViews(event: Event, state: RunTableState, actions: RunTableActions): void {
  const { views, settings } = state;
  const current = views.find(({ name }) => name === settings.view);
  const items: (MenuItem | null)[] = [
    { label: 'Default', checked: current === undefined, run: () => actions.apply(firstLayout, null) },
    ...views.map(view => ({
      label: view.name,
      checked: view === current,
      run: () => actions.apply({ ...firstLayout, ...layoutOf(view) }, view.name),
    })),
    null,
    { label: 'Save view as…', run: () => actions.saveView(null) },
    ...(current
      ? [
          { label: `Update “${current.name}”`, run: () => actions.saveView(current.name) },
          { label: `Delete “${current.name}”`, run: () => actions.deleteView(current.name) },
        ]
      : []),
  ];
  openMenu(event.currentTarget as HTMLElement, 'Views', items);
}

const layoutOf = ({ columns, sort, group, filter, archived }: RunTableState['views'][number]) => ({
  columns,
  sort,
  group,
  filter,
  archived,
});

function facts(state: RunTableState, actions: RunTableActions): TemplateResult {
  const { runs, total } = listingOf(state);
  const { problems } = parsedFilter(state);
  const { group } = state.settings.layout;
  const column = group === null ? null : parseColumn(group);
  const loaded = state.runs.filter(({ folder }) => state.cells.has(folder)).length;
  const count = runs.length === total ? counted(total, 'run') : `${runs.length} of ${counted(total, 'run')}`;
  return html`<span>${count}</span>
    ${loaded < state.runs.length ? html`<span class="muted">reading metrics, ${loaded} of ${state.runs.length}</span>` : nothing}
    ${
      column
        ? html`<span class="muted"
            >grouped by ${headOf(column, {}).title.toLowerCase()} · ${link('ungroup', () => actions.group(null))}</span
          >`
        : nothing
    }
    ${problems.length > 0 ? html`<span class="problem" role="alert">${problems.join('; ')}</span>` : nothing}
    ${state.refusal === null ? nothing : html`<span class="problem" role="alert">${state.refusal}</span>`}`;
}

/** The selected runs that the table lists. Hidden runs are left out, so that no action applies to them unseen. */
const selectedRuns = (state: RunTableState): readonly RunSummary[] =>
  state.selected.size === 0 ? [] : listingOf(state).runs.filter(({ folder }) => state.selected.has(folder));

function selectionBar(state: RunTableState, actions: RunTableActions): TemplateResult {
  const runs = selectedRuns(state);
  const folders = runs.map(({ folder }) => folder);
  const stoppable = runs.filter(
    run => !run.trainer && ['running', 'starting', 'paused', 'queued'].includes(displayStatus(run)),
  );
  const archived = runs.every(run => run.archived);
  const act = (label: string, run: () => void, isOff = false): TemplateResult =>
    html`<button class="plain link" type="button" ?disabled=${isOff} @click=${run}>${label}</button>`;
  return html`<span>${runs.length} selected</span>
    ${act('Compare', () => actions.act('compare', folders), runs.length < 2)}
    ${act(
      'Stop…',
      () =>
        actions.act(
          'stop',
          stoppable.map(({ folder }) => folder),
        ),
      stoppable.length === 0,
    )}
    ${
      archived
        ? act('Unarchive', () => actions.act('unarchive', folders))
        : act('Archive…', () => actions.act('archive', folders))
    }
    ${act('Search episodes…', () => actions.act('search', folders))}
    ${act('Export…', () => actions.act('export', folders))} ${act('Delete…', () => actions.act('delete', folders))}
    ${act('Clear selection', () => actions.selectAll(false))}`;
}
