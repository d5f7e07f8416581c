// The reducer of the run table. While newer values load, the old values stay displayed. Pure function.
import type { RunSummary } from '../../extension/protocol/page-state';
import type { RunCells, RunTableLayout, RunTableSnapshot, RunTableView } from '../../extension/protocol/run-table-page';
import type { Cell } from '../../extension/run-data/table-columns';
import { nextSort, parseSortKey } from '../../extension/run-data/run-order';
import type { Theme } from '../shared/theme';
import { listingOf } from './listing';
import { firstLayout, shownColumns, type Editing, type RunTableState, type Viewport } from './state';

export type RunTableEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly snapshot: RunTableSnapshot }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'changed'; readonly runs: readonly RunSummary[]; readonly gone: readonly string[] }
  | { readonly type: 'asked'; readonly folders: readonly string[] }
  | {
      readonly type: 'answered';
      readonly columns: readonly string[];
      readonly cells: readonly RunCells[];
      readonly metricKeys: readonly string[];
    }
  | { readonly type: 'filter'; readonly line: string }
  | { readonly type: 'sort'; readonly by: string; readonly add: boolean }
  | { readonly type: 'sort-set'; readonly sort: readonly string[] }
  | { readonly type: 'group'; readonly by: string | null }
  | { readonly type: 'fold'; readonly value: Cell }
  | { readonly type: 'column'; readonly id: string; readonly isShown: boolean }
  | { readonly type: 'move'; readonly id: string; readonly by: -1 | 1 }
  | { readonly type: 'archived'; readonly isShown: boolean }
  | { readonly type: 'chooser'; readonly chooser: RunTableState['chooser'] }
  | { readonly type: 'viewport'; readonly viewport: Viewport }
  | { readonly type: 'select'; readonly folder: string; readonly isSelected: boolean; readonly range: boolean }
  | { readonly type: 'select-all'; readonly isSelected: boolean }
  | { readonly type: 'edit'; readonly editing: Editing | null }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'layout'; readonly layout: RunTableLayout; readonly view: string | null }
  | { readonly type: 'views'; readonly views: readonly RunTableView[]; readonly view: string | null }
  | { readonly type: 'theme'; readonly theme: Theme };

export function reduce(state: RunTableState, event: RunTableEvent): RunTableState {
  switch (event.type) {
    case 'connecting':
      return state.connection === 'connecting' ? state : { ...state, connection: 'connecting' };
    case 'connected': {
      const { runs, configKeys, variedKeys, meanings, views } = event.snapshot;
      const there = new Set(runs.map(({ folder }) => folder));
      const selected = new Set([...state.selected].filter(folder => there.has(folder)));
      return {
        ...state,
        connection: 'connected',
        runs,
        configKeys,
        variedKeys,
        meanings,
        views,
        selected,
        stale: there,
      };
    }
    case 'failed':
      return { ...state, connection: { failed: event.message }, asking: false };
    case 'changed':
      return withRuns(state, event.runs, event.gone);
    case 'asked':
      return { ...state, asking: true, stale: without(state.stale, event.folders) };
    case 'answered':
      return answered(state, event);
    case 'filter':
      return withLayout(state, { filter: event.line });
    case 'sort':
      return withLayout(state, { sort: nextSort(state.settings.layout.sort, event.by, event.add) });
    case 'sort-set':
      return withLayout(state, { sort: event.sort });
    case 'group':
      return { ...withLayout(state, { group: event.by }), folded: new Set() };
    case 'fold': {
      const isFolded = state.folded.has(event.value);
      return {
        ...state,
        folded: isFolded ? without(state.folded, [event.value]) : new Set([...state.folded, event.value]),
      };
    }
    case 'column': {
      const shown = shownColumns(state);
      if (shown.includes(event.id) === event.isShown) return state;
      const columns = event.isShown ? [...shown, event.id] : shown.filter(id => id !== event.id);
      const sort = state.settings.layout.sort.filter(text => event.isShown || parseSortKey(text).by !== event.id);
      return withLayout(state, { columns, sort });
    }
    case 'move': {
      const columns = [...shownColumns(state)];
      const [from, to] = [columns.indexOf(event.id), columns.indexOf(event.id) + event.by];
      if (from < 0 || to < 0 || to >= columns.length) return state;
      [columns[from], columns[to]] = [columns[to], columns[from]];
      return withLayout(state, { columns });
    }
    case 'archived':
      return withLayout(state, { archived: event.isShown });
    case 'chooser':
      return { ...state, chooser: event.chooser };
    case 'viewport': {
      const { top, rows } = event.viewport;
      return top === state.viewport.top && rows === state.viewport.rows
        ? state
        : { ...state, viewport: event.viewport };
    }
    case 'select':
      return selection(state, event);
    case 'select-all': {
      const selected = new Set(event.isSelected ? listingOf(state).runs.map(({ folder }) => folder) : []);
      return { ...state, selected, anchor: null };
    }
    case 'edit':
      return { ...state, editing: event.editing, refusal: null };
    case 'refused':
      return { ...state, refusal: event.message };
    case 'layout':
      return {
        ...state,
        settings: { layout: event.layout, view: event.view },
        folded: new Set(),
        viewport: { ...state.viewport, top: 0 },
      };
    case 'views':
      return { ...state, views: event.views, settings: { ...state.settings, view: event.view } };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

function withLayout(state: RunTableState, part: Partial<RunTableLayout>): RunTableState {
  const layout = { ...firstLayout, ...state.settings.layout, ...part };
  return { ...state, settings: { ...state.settings, layout } };
}

function without<T>(set: ReadonlySet<T>, items: readonly T[]): ReadonlySet<T> {
  if (!items.some(item => set.has(item))) return set;
  return new Set([...set].filter(item => !items.includes(item)));
}

/** Replaces or adds runs and removes deleted ones; the newest run stays first. */
function withRuns(state: RunTableState, runs: readonly RunSummary[], gone: readonly string[]): RunTableState {
  const changed = new Map(runs.map(run => [run.folder, run]));
  const kept = state.runs.filter(({ folder }) => !gone.includes(folder));
  const known = new Set(kept.map(({ folder }) => folder));
  const added = runs.filter(({ folder }) => !known.has(folder));
  const all = [...added, ...kept.map(run => changed.get(run.folder) ?? run)];
  if (added.length > 0) all.sort((a, b) => (a.created < b.created ? 1 : a.created > b.created ? -1 : 0));
  return {
    ...state,
    runs: all,
    stale: new Set([...without(state.stale, gone), ...changed.keys()]),
    selected: without(state.selected, gone),
  };
}

function answered(state: RunTableState, event: RunTableEvent & { type: 'answered' }): RunTableState {
  const cells = new Map(state.cells);
  const problems = new Map(state.problems);
  for (const { folder, values, problem } of event.cells) {
    cells.set(
      folder,
      new Map([...(cells.get(folder) ?? []), ...event.columns.map((id, i) => [id, values[i]] as const)]),
    );
    if (problem === undefined) problems.delete(folder);
    else problems.set(folder, problem);
  }
  const fresh = event.metricKeys.filter(key => !state.metricKeys.includes(key));
  const metricKeys = fresh.length > 0 ? [...state.metricKeys, ...fresh] : state.metricKeys;
  return { ...state, asking: false, cells, problems, metricKeys };
}

/** Selects a run; with `range`, all rows between this run and the one that was selected before. */
function selection(state: RunTableState, event: RunTableEvent & { type: 'select' }): RunTableState {
  const { folder, isSelected, range } = event;
  const order = listingOf(state).runs.map(run => run.folder);
  const [from, to] = [state.anchor === null ? -1 : order.indexOf(state.anchor), order.indexOf(folder)];
  const touched = range && from >= 0 ? order.slice(Math.min(from, to), Math.max(from, to) + 1) : [folder];
  const selected = isSelected ? new Set([...state.selected, ...touched]) : without(state.selected, touched);
  return { ...state, selected, anchor: folder };
}
