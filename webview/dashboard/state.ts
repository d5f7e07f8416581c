// The state of the Dashboard. It is immutable: every change is made by the reducer. The metrics are not copied into it:
// they stay in the series store, of which the state has a summary that changes with the store.
import type { DashboardSnapshot } from '../../extension/protocol/dashboard-page';
import type { RunSummary } from '../../extension/protocol/pages';
import type { RunEvent } from '../../extension/run-data/run-events';
import type { Theme } from '../shared/theme';
import { arranged } from './arrangement';
import { arrange, type ChartGroup, type ChartSpec } from '../charts/catalogue';
import type { SeriesSummary } from './series';
import type { DashboardSettings } from './settings';
import type { Sort } from './sorting';

export interface DashboardState {
  /** `failed` is the message of a refused connection. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  /** Null until the first snapshot, and after a refused one. */
  readonly run: RunSummary | null;
  readonly events: readonly RunEvent[];
  readonly meanings: DashboardSnapshot['meanings'];
  readonly episodes: DashboardSnapshot['episodes'];
  readonly scored: boolean;
  /** Share of the metrics that the host has read, 0 to 1. */
  readonly read: number;
  readonly series: SeriesSummary;
  readonly settings: DashboardSettings;
  /** The page has no settings of its own yet, and takes those last used in the workspace. */
  readonly isFresh: boolean;
  /** Text of the search field. */
  readonly search: string;
  /** Row of the crosshair. */
  readonly hovered: number | null;
  readonly opened: RunEvent | null;
  /** By the id of a chart that shows a table, the order of its rows. */
  readonly tables: Readonly<Record<string, Sort>>;
  /** What was just done, for screen readers. */
  readonly announcement: string;
  /** Why the last export failed. */
  readonly refusal: string | null;
  readonly theme: Theme;
}

export const initialState = (settings: DashboardSettings, isFresh: boolean, theme: Theme): DashboardState => ({
  ...{ connection: 'connecting', run: null, events: [], meanings: {}, episodes: { train: null, val: {} } },
  ...{ scored: false, read: 1, series: { rows: 0, keys: [] }, settings, isFresh, search: '', hovered: null },
  ...{ opened: null, tables: {}, announcement: '', refusal: null, theme },
});

/** The charts of a run in the user's order. */
export function groupsOf(
  keys: readonly string[],
  scored: boolean,
  tag: string | null,
  pinned: DashboardSettings['pinned'],
  order: DashboardSettings['order'],
): ChartGroup[] {
  return arranged(arrange({ keys, scored, tag: tag ?? undefined }), { pinned, order });
}

/** The searched text in lower case; empty for no search. */
export const searchedText = ({ search }: DashboardState): string => search.trim().toLowerCase();

/** Whether the title or a key of a chart contains the text, which is in lower case. */
export function matches({ title, lines, scores }: ChartSpec, text: string): boolean {
  if (scores) return 'scores spread histogram reward'.includes(text);
  return [title, ...lines.map(line => line.key)].some(name => name.toLowerCase().includes(text));
}

/** The groups with the charts that match the search, without empty groups. */
export function foundGroups(groups: readonly ChartGroup[], text: string): readonly ChartGroup[] {
  if (text === '') return groups;
  const found = groups.map(group => ({ ...group, charts: group.charts.filter(chart => matches(chart, text)) }));
  return found.filter(({ charts }) => charts.length > 0);
}

export const alarmsOf = (events: readonly RunEvent[]): RunEvent[] =>
  events.filter(({ kind }) => kind === 'alarm' || kind === 'early_stop');

/** Whether the metrics are shown as a table: the user's choice, or an evaluation, which has no steps. */
export const isTable = ({ run, settings, series }: DashboardState): boolean =>
  series.rows > 0 && (settings.table || Boolean(run?.status.episodes));
