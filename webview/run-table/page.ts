// The run table: all runs of the workspace as rows, with any metric and any configuration key as columns. The page
// requests the values of a few runs at a time, the rows in view first, with only one request in flight.
import { render } from 'lit';
import {
  runTableAction,
  runTableCells,
  runTableChanged,
  runTableColour,
  runTableDeleteView,
  runTableExport,
  runTableNotes,
  runTableReady,
  runTableSaveView,
  runTableTags,
  runTableWriteNotes,
} from '../../extension/protocol/run-table-page';
import { csvLine } from '../../extension/run-data/csv';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { offerKeyHelp } from '../components/key-help';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import type { RunTableActions } from './actions';
import { cellOf, listingOf } from './listing';
import { reduce } from './reducer';
import { nextRequest } from './requests';
import { runTableView } from './run-table-view';
import { firstSettings, initialState, shownColumns, type RunTableState } from './state';

/** Starts the page in `root`. */
export function startRunTable(host: Host, root: HTMLElement): void {
  const saved = viewState(host, 1, firstSettings);
  const refused = (error: unknown): void => dispatch({ type: 'refused', message: messageOf(error) });
  const actions: RunTableActions = {
    load,
    filter: line => dispatch({ type: 'filter', line }),
    sort: (by, add) => dispatch({ type: 'sort', by, add }),
    setSort: sort => dispatch({ type: 'sort-set', sort }),
    group: by => dispatch({ type: 'group', by }),
    fold: value => dispatch({ type: 'fold', value }),
    showColumn: (id, isShown) => dispatch({ type: 'column', id, isShown }),
    moveColumn: (id, by) => dispatch({ type: 'move', id, by }),
    showArchived: isShown => dispatch({ type: 'archived', isShown }),
    choose: chooser => dispatch({ type: 'chooser', chooser }),
    see: viewport => dispatch({ type: 'viewport', viewport }),
    select: (folder, isSelected, range) => dispatch({ type: 'select', folder, isSelected, range }),
    selectAll: isSelected => dispatch({ type: 'select-all', isSelected }),
    edit,
    endEdit,
    recolour: (folder, colour) => void host.request(runTableColour, { folder, colour }).catch(refused),
    act: (action, folders) => host.notify(runTableAction, { action, folders: [...folders] }),
    apply: (layout, view) => dispatch({ type: 'layout', layout, view }),
    saveView(name) {
      const { layout } = store.state.settings;
      host.request(runTableSaveView, { layout, name }).then(result => {
        if (result) dispatch({ type: 'views', views: result.views, view: result.name });
      }, refused);
    },
    deleteView(name) {
      host.request(runTableDeleteView, { name }).then(views => dispatch({ type: 'views', views, view: null }), refused);
    },
    exportCsv() {
      host.request(runTableExport, { text: csvOf(store.state) }).catch(refused);
    },
  };
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(runTableView(state, actions), root);
    if (state.editing && state.editing !== before?.editing)
      root.querySelector<HTMLInputElement>('.cell-editor')?.focus();
    if (nextRequest(state)) queueMicrotask(ask); // changes of the same event-loop task share a request
  });
  const { dispatch } = store;

  function load(): void {
    dispatch({ type: 'connecting' });
    host.request(runTableReady, null).then(
      snapshot => {
        saved.keepFolder(document.body.dataset.run ?? '');
        dispatch({ type: 'connected', snapshot });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  function ask(): void {
    const request = nextRequest(store.state);
    if (!request || typeof store.state.connection === 'object') return;
    const { folders, columns } = request;
    dispatch({ type: 'asked', folders });
    host.request(runTableCells, request).then(
      ({ cells, metricKeys }) => dispatch({ type: 'answered', columns, cells, metricKeys }),
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  function edit(folder: string, field: 'tags' | 'notes'): void {
    const run = store.state.runs.find(each => each.folder === folder);
    if (!run) return;
    if (field === 'tags')
      return dispatch({ type: 'edit', editing: { folder, field, before: (run.tags ?? []).join(', ') } });
    dispatch({ type: 'edit', editing: { folder, field, before: null } });
    host.request(runTableNotes, { folder }).then(
      before => {
        const { editing } = store.state;
        if (editing?.folder === folder && editing.field === field)
          dispatch({ type: 'edit', editing: { folder, field, before } });
      },
      (error: unknown) => {
        dispatch({ type: 'edit', editing: null });
        refused(error);
      },
    );
  }

  function endEdit(text: string | null): void {
    const { editing } = store.state;
    if (!editing) return;
    dispatch({ type: 'edit', editing: null });
    const { folder, field, before } = editing;
    if (text === null || before === null || text === before) return;
    const writing =
      field === 'tags'
        ? host.request(runTableTags, { folder, tags: tagsIn(text) })
        : host.request(runTableWriteNotes, { folder, before, text });
    writing.catch(refused);
  }

  host.onNotify(runTableChanged, ({ runs, gone }) => {
    if (store.state.connection === 'connected') dispatch({ type: 'changed', runs, gone });
  });
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const keys: KeyMap = {
    '/': { does: 'Filter the runs', run: () => root.querySelector<HTMLElement>('.filter')?.focus() },
    c: {
      does: 'Choose columns',
      run: () => actions.choose(store.state.chooser ? null : { search: '', step: 1 }),
    },
    Escape: { does: 'Cancel the edit, close the columns, or clear the selection', run: escape },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [{ title: 'Run table', keys }]);

  function escape(): void {
    if (store.state.editing) actions.endEdit(null);
    else if (store.state.chooser) actions.choose(null);
    else if (store.state.selected.size > 0) actions.selectAll(false);
  }

  onShown(host, load);
  load();
}

/** Returns tags separated by commas, without the `#` before a tag and without duplicates. */
const tagsIn = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map(tag => tag.trim().replace(/^#+/, ''))
      .filter(tag => tag !== ''),
  ),
];

/** Returns the table as CSV: all runs that pass the filter, with values of full precision. */
function csvOf(state: RunTableState): string {
  const columns = ['name', 'id', ...shownColumns(state).filter(id => id !== 'id')];
  const rows = listingOf(state).runs.map(run => csvLine(columns.map(id => cellOf(state.cells, run, id))));
  return [csvLine(columns), ...rows].join('');
}
