// The immutable state of the Compare page; only the reducer changes it. `wantedKeys` returns the keys of the columns
// that the page needs and has not yet requested, and `page.ts` requests these columns.
import type { Theme } from '../shared/theme';
import type { Compared, ComparedMetric } from './compared-metrics';
import type { RunCurve } from './group-curves';

/** Settings that are restored when the page is shown again. */
export interface CompareSettings {
  readonly smoothing: number;
  /** Ids of the open sections. */
  readonly open: readonly string[];
  /** Key of the metric in the table; null selects the default (`tableMetric`). */
  readonly metric: string | null;
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
  /** The step under the pointer. */
  readonly hovered: number | null;
  /** Text of the search field. */
  readonly search: string;
  /** Ids of sections that the user closed during the current search. */
  readonly closed: readonly string[];
  readonly settings: CompareSettings;
  readonly theme: Theme;
}

export const firstSettings: CompareSettings = { smoothing: 0, open: ['task', 'policy', 'collapse'], metric: null };

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
  const { asked, onScreen } = state;
  return (state.compared?.metrics ?? [])
    .filter(metric => !asked.has(metric.key) && (onScreen.has(metric.key) || metric === table))
    .map(({ key }) => key);
}
