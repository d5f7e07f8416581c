// The reducer of the Compare page. While newer columns load, the old columns stay displayed. If the compared runs have
// changed, the old columns are removed immediately. Pure function.
import type { CompareSnapshot } from '../../extension/protocol/compare-page';
import type { Theme } from '../shared/theme';
import { comparedOf } from './compared-metrics';
import type { RunCurve } from '../../extension/run-data/charts/group-curves';
import { searchedText, type CompareSettings, type CompareState } from './state';

/** The host's answer to a request for columns, one entry per run. */
export type RunColumns = readonly {
  readonly steps: Float64Array;
  readonly columns: Readonly<Record<string, Float64Array>>;
}[];

export type CompareEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly snapshot: CompareSnapshot }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'asked'; readonly keys: readonly string[] }
  /** `of` is the snapshot that was current when the request was sent. */
  | {
      readonly type: 'answered';
      readonly keys: readonly string[];
      readonly of: CompareSnapshot;
      readonly runs: RunColumns;
    }
  | { readonly type: 'refused' }
  | { readonly type: 'on-screen'; readonly key: string; readonly isOnScreen: boolean }
  | { readonly type: 'hovered'; readonly x: number | null }
  | { readonly type: 'searched'; readonly text: string }
  | { readonly type: 'unfolded'; readonly section: string; readonly isOpen: boolean }
  | { readonly type: 'smoothed'; readonly smoothing: number }
  | { readonly type: 'metric-chosen'; readonly key: string }
  | { readonly type: 'axis-chosen'; readonly axis: CompareSettings['axis'] }
  | { readonly type: 'zoomed'; readonly zoom: CompareSettings['zoom'] }
  | { readonly type: 'toggled'; readonly key: string; readonly setting: 'log' | 'enlarged' }
  | { readonly type: 'hidden'; readonly runs: readonly string[]; readonly isHidden: boolean }
  | { readonly type: 'baseline'; readonly group: string | null }
  | { readonly type: 'differences'; readonly differences: boolean }
  | { readonly type: 'theme'; readonly theme: Theme };

export function reduce(state: CompareState, event: CompareEvent): CompareState {
  switch (event.type) {
    case 'connecting':
      return state.compared || state.connection === 'connecting' ? state : { ...state, connection: 'connecting' };
    case 'connected': {
      const { snapshot } = event;
      const isSame = state.compared !== null && idsOf(state.compared.snapshot) === idsOf(snapshot);
      const columns: CompareState['columns'] = isSame ? state.columns : new Map();
      return { ...state, connection: 'connected', compared: comparedOf(snapshot), columns, asked: new Set() };
    }
    case 'failed':
      return { ...state, connection: { failed: event.message }, compared: null };
    case 'asked':
      return { ...state, asking: true, asked: new Set([...state.asked, ...event.keys]) };
    case 'answered':
      return { ...state, asking: false, columns: columnsAfter(state, event) };
    case 'refused': // the host is reloading the runs; the next snapshot triggers a new request
      return { ...state, asking: false };
    case 'on-screen':
      return state.onScreen.has(event.key) === event.isOnScreen
        ? state
        : { ...state, onScreen: new Set(listed([...state.onScreen], event.key, event.isOnScreen)) };
    case 'hovered':
      return event.x === state.hovered ? state : { ...state, hovered: event.x };
    case 'searched':
      return event.text === state.search ? state : { ...state, search: event.text, closed: [] };
    case 'unfolded':
      return unfolded(state, event.section, event.isOpen);
    case 'smoothed':
      return withSettings(state, { smoothing: event.smoothing });
    case 'metric-chosen':
      return withSettings(state, { metric: event.key });
    case 'axis-chosen': // a part of one axis means nothing on another
      return { ...withSettings(state, { axis: event.axis, zoom: null }), hovered: null };
    case 'zoomed':
      return withSettings(state, { zoom: event.zoom });
    case 'toggled': {
      const list = state.settings[event.setting];
      return withSettings(state, { [event.setting]: listed(list, event.key, !list.includes(event.key)) });
    }
    case 'hidden': {
      const others = state.settings.hidden.filter(id => !event.runs.includes(id));
      return withSettings(state, { hidden: event.isHidden ? [...others, ...event.runs] : others });
    }
    case 'baseline': // a first baseline turns differences on, because users choose one to see them
      return withSettings(state, { baseline: event.group, differences: event.group !== null });
    case 'differences':
      return withSettings(state, { differences: event.differences });
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

const withSettings = (state: CompareState, part: Partial<CompareSettings>): CompareState => ({
  ...state,
  settings: { ...state.settings, ...part },
});

const idsOf = ({ runs }: CompareSnapshot): string => runs.map(({ run }) => run.id).join();

/**
 * Adds the columns of an answer to the columns of the state. If the compared runs have changed since the request was
 * sent, the answer is ignored.
 */
function columnsAfter(
  { compared, columns }: CompareState,
  { keys, of, runs }: Extract<CompareEvent, { type: 'answered' }>,
): CompareState['columns'] {
  if (!compared || runs.length !== of.runs.length || idsOf(of) !== idsOf(compared.snapshot)) return columns;
  const curves = (key: string): RunCurve[] =>
    runs.map(({ steps, columns: own }) => ({
      steps,
      values: own[key] ?? new Float64Array(steps.length).fill(Number.NaN),
    }));
  return new Map([...columns, ...keys.map(key => [key, curves(key)] as const)]);
}

/**
 * Stores whether a section is open. A search opens all sections. Sections that the user closes during a search are
 * stored in a separate list, so that the stored open sections do not change.
 */
function unfolded(state: CompareState, section: string, isOpen: boolean): CompareState {
  if (searchedText(state) !== '') {
    const closed = listed(state.closed, section, !isOpen);
    return closed === state.closed ? state : { ...state, closed };
  }
  const open = listed(state.settings.open, section, isOpen);
  return open === state.settings.open ? state : withSettings(state, { open });
}

/** Adds an item to a list or removes it; returns the same list if nothing changes. */
function listed(list: readonly string[], item: string, isIn: boolean): readonly string[] {
  if (list.includes(item) === isIn) return list;
  return isIn ? [...list, item] : list.filter(other => other !== item);
}
