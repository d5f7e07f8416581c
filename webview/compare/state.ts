// The state of the comparison. It is immutable: every change is made by the reducer. Columns are requested for what is
// on screen: which ones follows from the state (`wantedKeys`), and `page.ts` requests them.
import type { Theme } from '../shared/theme';
import type { Compared, ComparedMetric } from './compared';
import type { RunCurve } from './group-curves';

/** What the page keeps when it is hidden or restored. */
export interface CompareSettings {
  readonly smoothing: number;
  /** Sections that are open. */
  readonly open: readonly string[];
  /** Metric of the table; null for success, if it was measured. */
  readonly metric: string | null;
}

export interface CompareState {
  /** `failed` is the message of runs that could not be read. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly compared: Compared | null;
  /** By key, one curve per run. */
  readonly columns: ReadonlyMap<string, readonly RunCurve[]>;
  /** Keys requested since the newest snapshot. */
  readonly asked: ReadonlySet<string>;
  /** A request of columns is being answered; no other one is sent. */
  readonly asking: boolean;
  /** Keys of the charts on screen. */
  readonly onScreen: ReadonlySet<string>;
  /** The step under the pointer. */
  readonly hovered: number | null;
  /** The text in the search field. */
  readonly search: string;
  /** Sections closed while searching, which opens all of them. */
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

/** The text that metrics must contain, in lower case. */
export const searchedText = ({ search }: CompareState): string => search.trim().toLowerCase();

/** The metrics whose key or title contains the searched text. */
export function foundMetrics(state: CompareState): readonly ComparedMetric[] {
  const text = searchedText(state);
  const metrics = state.compared?.metrics ?? [];
  return text === '' ? metrics : metrics.filter(({ key, title }) => `${key} ${title}`.toLowerCase().includes(text));
}

export const isOpen = (state: CompareState, section: string): boolean =>
  searchedText(state) === '' ? state.settings.open.includes(section) : !state.closed.includes(section);

/** The table's metric: the selected one, else validation success, else training success, else the first. */
export function tableMetric({ compared, settings }: CompareState): ComparedMetric | undefined {
  const all = compared?.metrics ?? [];
  const success = (side: string): ComparedMetric | undefined =>
    all.find(({ key }) => key.startsWith(side) && key.endsWith('/success'));
  return all.find(({ key }) => key === settings.metric) ?? success('val-env/') ?? success('train/') ?? all[0];
}

/** Keys on screen whose columns have not been requested since the newest snapshot. */
export function wantedKeys(state: CompareState): string[] {
  const table = tableMetric(state);
  const { asked, onScreen } = state;
  return (state.compared?.metrics ?? [])
    .filter(metric => !asked.has(metric.key) && (onScreen.has(metric.key) || metric === table))
    .map(({ key }) => key);
}
