// The immutable state of the Compare page; only the reducer changes it. `wantedKeys` returns the keys of the columns
// that the page needs and has not yet requested, and `page.ts` requests these columns.
import type { MarkedEvent } from '../../extension/run-data/event-marks';
import type { Theme } from '../shared/theme';
import { latest } from '../shared/memoize-latest';
import { shownGroups, type ColouredGroup, type Compared, type ComparedMetric } from './compared-metrics';
import { axisKeys, positionsOf, type CompareAxis } from '../../extension/run-data/charts/run-axis';
import type { RunCurve } from '../../extension/run-data/charts/group-curves';

/** Settings that are restored when the page is shown again. */
export interface CompareSettings {
  readonly smoothing: number;
  /** Ids of the open sections. */
  readonly open: readonly string[];
  /** Key of the metric in the table; null selects the default (`tableMetric`). */
  readonly metric: string | null;
  readonly axis: CompareAxis;
  /** The visible part of the x axis of all charts; null shows all of it. */
  readonly zoom: { readonly from: number; readonly to: number } | null;
  /** Keys of the charts with a logarithmic scale, and of the enlarged charts. */
  readonly log: readonly string[];
  readonly enlarged: readonly string[];
  /** Ids of the hidden runs. */
  readonly hidden: readonly string[];
  /** Id of the baseline group; null without one. */
  readonly baseline: string | null;
  /** Whether the charts show differences from the baseline. */
  readonly differences: boolean;
}

export interface CompareState {
  /** `failed` is the error message if the runs could not be read. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly compared: Compared | null;
  /** For each key, one curve per run. */
  readonly columns: ReadonlyMap<string, readonly RunCurve[]>;
  /** Keys requested since the newest snapshot. */
  readonly asked: ReadonlySet<string>;
  /** Whether a request for columns is in flight; the next request is sent after its answer. */
  readonly asking: boolean;
  /** Keys of the charts on screen. */
  readonly onScreen: ReadonlySet<string>;
  /** The position under the pointer on the x axis. */
  readonly hovered: number | null;
  /** Text of the search field. */
  readonly search: string;
  /** Ids of sections that the user closed during the current search. */
  readonly closed: readonly string[];
  readonly settings: CompareSettings;
  readonly theme: Theme;
}

/** Id of the section of a sweep. */
export const sweepId = 'sweep';

export const firstSettings: CompareSettings = {
  smoothing: 0,
  open: [sweepId, 'task', 'policy', 'collapse'],
  metric: null,
  axis: 'step',
  zoom: null,
  log: [],
  enlarged: [],
  hidden: [],
  baseline: null,
  differences: false,
};

export const initialState = (settings: CompareSettings, theme: Theme): CompareState => ({
  connection: 'connecting',
  compared: null,
  columns: new Map(),
  asked: new Set(),
  asking: false,
  onScreen: new Set(),
  hovered: null,
  search: '',
  closed: [],
  settings,
  theme,
});

/** Returns the search text in lower case; empty without a search. */
export const searchedText = ({ search }: CompareState): string => search.trim().toLowerCase();

/** Returns the metrics whose key or title contains the search text. */
export function foundMetrics(state: CompareState): readonly ComparedMetric[] {
  const text = searchedText(state);
  const metrics = state.compared?.metrics ?? [];
  return text === '' ? metrics : metrics.filter(({ key, title }) => `${key} ${title}`.toLowerCase().includes(text));
}

export const isOpen = (state: CompareState, section: string): boolean =>
  searchedText(state) === '' ? state.settings.open.includes(section) : !state.closed.includes(section);

/**
 * Returns the table's metric: the selected metric, else validation success, else training success, else the first
 * metric.
 */
export function tableMetric({ compared, settings }: CompareState): ComparedMetric | undefined {
  const all = compared?.metrics ?? [];
  const success = (side: string): ComparedMetric | undefined =>
    all.find(({ key }) => key.startsWith(side) && key.endsWith('/success'));
  return all.find(({ key }) => key === settings.metric) ?? success('val-env/') ?? success('train/') ?? all[0];
}

/**
 * Returns the keys whose columns must be requested. These are the keys of all charts on screen and of the table's
 * metric, except keys already requested since the newest snapshot.
 */
export function wantedKeys(state: CompareState): string[] {
  const table = tableMetric(state);
  const { asked, onScreen, settings } = state;
  const axisKey = axisKeys[settings.axis];
  const ofAxis = state.compared && axisKey !== null && !asked.has(axisKey) ? [axisKey] : [];
  const ofCharts = (state.compared?.metrics ?? [])
    .filter(metric => !asked.has(metric.key) && (onScreen.has(metric.key) || metric === table))
    .map(({ key }) => key);
  return [...new Set([...ofAxis, ...ofCharts])];
}

/** Everything that is the same for all charts. The object stays the same while its inputs are unchanged. */
export interface ComparedLook {
  readonly groups: readonly ColouredGroup[];
  readonly axis: CompareAxis;
  /** Positions of each run's rows; null while the column of the axis is loading, and for steps. */
  readonly positions: readonly Float64Array[] | null;
  /** For each run, the events to mark below charts. */
  readonly events: readonly (readonly MarkedEvent[])[];
  /** Index into `groups` of the baseline whose values are subtracted; null draws the values themselves. */
  readonly baseline: number | null;
}

/** Returns a function that derives the look of a state, or null before the runs are known. */
export function lookMaker(): (state: CompareState) => ComparedLook | null {
  const groupsOf = latest(({ groups, snapshot }: Compared, hidden: CompareSettings['hidden']) =>
    shownGroups(groups, snapshot, hidden),
  );
  const positions = latest((axis: CompareAxis, curves: readonly RunCurve[] | undefined) =>
    curves ? curves.map(curve => positionsOf(axis, curve)) : null,
  );
  const eventsOf = latest(({ snapshot }: Compared) => snapshot.runs.map(({ marks }) => marks));
  const make = latest(
    (
      groups: readonly ColouredGroup[],
      axis: CompareAxis,
      ofRuns: readonly Float64Array[] | null,
      events: ComparedLook['events'],
      baseline: number | null,
    ): ComparedLook => ({ groups, axis, positions: ofRuns, events, baseline }),
  );
  return ({ compared, columns, settings }) => {
    if (!compared) return null;
    const { axis, hidden, baseline, differences } = settings;
    const groups = groupsOf(compared, hidden);
    const key = axisKeys[axis];
    const at = differences ? groups.findIndex(({ id }) => id === baseline) : -1;
    return make(
      groups,
      axis,
      key === null ? null : positions(axis, columns.get(key)),
      eventsOf(compared),
      at < 0 ? null : at,
    );
  };
}

/** Returns the axes for which at least one run logs the necessary metric. */
export const axesOf = ({ snapshot }: Compared): CompareAxis[] =>
  (['step', 'tokens', 'time'] as const).filter(axis => {
    const key = axisKeys[axis];
    return key === null || key === 'wall_s' || snapshot.runs.some(({ keys }) => keys.includes(key));
  });
