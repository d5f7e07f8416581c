// The immutable state of the Dashboard; only the reducer changes it. Metrics stay in the series store; the state
// contains a summary that is replaced when the store changes.
import type { DashboardSnapshot } from '../../extension/protocol/dashboard-page';
import type { RunSummary } from '../../extension/protocol/page-state';
import { exceedsMemory, plannedMemorySchema, type PlannedMemory } from '../../extension/run-data/memory-shortage';
import type { PickedEpisode } from '../../extension/run-data/picked-episodes';
import type { RunEnding } from '../../extension/run-data/run-ending';
import { isUnended } from '../../extension/run-data/run-progress';
import type { RunEvent } from '../../extension/run-data/run-events';
import type { Theme } from '../shared/theme';
import { noneRedundant } from '../../extension/run-data/redundant-columns';
import { arranged, type ShownGroup } from './charts/arrangement';
import { arrange, type ChartSpec } from '../../extension/run-data/charts/catalogue';
import { alarmedKeys } from '../../extension/run-data/charts/overview';
import { metricName } from '../../extension/run-data/charts/metric-names';
import { ownCharts } from '../../extension/run-data/charts/own-charts';
import { panelGroups } from '../charts/panels';
import { areSame } from '../shared/memoize-latest';
import type { SeriesSummary } from '../charts/metric-series';
import type { DashboardSettings } from './dashboard-settings';
import type { Sort } from './run/table-sorting';

export interface DashboardState {
  /** `failed` is the error message of a failed connection. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  /** The run; null before the first snapshot and after a failed snapshot request. */
  readonly run: RunSummary | null;
  readonly events: readonly RunEvent[];
  readonly meanings: DashboardSnapshot['meanings'];
  readonly episodes: DashboardSnapshot['episodes'];
  readonly scored: boolean;
  /** Summary of the run's end; null while the run has not ended. */
  readonly ending: RunEnding | null;
  /** The episodes that are worth reading first. */
  readonly picked: readonly PickedEpisode[];
  /** Share of the metrics that the host has read, 0 to 1. */
  readonly read: number;
  readonly series: SeriesSummary;
  readonly settings: DashboardSettings;
  /** Whether the page has no saved settings yet. If so, it uses the settings last used in the workspace. */
  readonly isFresh: boolean;
  /** Text of the search field. */
  readonly search: string;
  /** Row of the crosshair; null if it is hidden. */
  readonly hovered: number | null;
  /** Id of the chart that fills the page; null if none does. */
  readonly full: string | null;
  readonly opened: RunEvent | null;
  /** Sort orders of charts that show a table, by chart id. */
  readonly tables: Readonly<Record<string, Sort>>;
  /** Description of the last action, for screen readers. */
  readonly announcement: string;
  /** Error message of the last export; null if it succeeded. */
  readonly refusal: string | null;
  readonly theme: Theme;
}

export const initialState = (settings: DashboardSettings, isFresh: boolean, theme: Theme): DashboardState => ({
  ...{ connection: 'connecting', run: null, events: [], meanings: {}, episodes: { train: null, val: {} } },
  ...{
    ending: null,
    picked: [],
    scored: false,
    read: 1,
    series: { rows: 0, keys: [], redundant: noneRedundant },
    settings,
    isFresh,
    search: '',
    hovered: null,
    full: null,
  },
  ...{ opened: null, tables: {}, announcement: '', refusal: null, theme },
});

/** Identifies one end of a run, because a run that is resumed ends again. */
export const endingKey = ({ id, status }: RunSummary): string => `${id} ${status.updated}`;

/** Returns the ending to show in a banner; null if the run has not ended, or if the user has closed the banner. */
export const shownEnding = ({ run, ending, settings }: DashboardState): RunEnding | null =>
  run && ending && !isUnended(run.status.state) && settings.closedEnding !== endingKey(run) ? ending : null;

/** Returns the charts of a run in the user's order. */
export const groupsOf = ({ series, scored, events, settings }: GroupInputs): ShownGroup[] =>
  arranged(
    [
      ...panelGroups(settings.panels),
      ...arrange({ keys: series.keys, scored, tag: settings.tag ?? undefined, own: ownCharts(events) }),
    ],
    {
      ...settings,
      alarmed: alarmedKeys(events),
      columns: series.redundant,
    },
  );

/** The part of the state on which the arrangement of charts depends. */
export type GroupInputs = Pick<DashboardState, 'series' | 'scored' | 'events' | 'settings'>;

/** Returns a function like `groupsOf` that returns the same object until one of its inputs changes. */
export function groupsReader(): (state: GroupInputs) => ShownGroup[] {
  let inputs: readonly unknown[] = [];
  let groups: ShownGroup[] = [];
  return state => {
    const { series, events, scored, settings } = state;
    const { tag, pinned, order, redundant, panels } = settings;
    const now = [series.keys, series.redundant, events, scored, tag, pinned, order, redundant, panels];
    if (!areSame(now, inputs)) groups = groupsOf(state);
    inputs = now;
    return groups;
  };
}

/** Returns the search text in lower case; empty without a search. */
export const searchedText = ({ search }: DashboardState): string => search.trim().toLowerCase();

/** Whether the title, a key or a metric's name of a chart contains `text`, which must be in lower case. */
export function matches({ title, lines, scores }: ChartSpec, text: string): boolean {
  if (scores) return 'scores spread histogram reward'.includes(text);
  return [title, ...lines.flatMap(({ key }) => [key, metricName(key)])].some(name => name.toLowerCase().includes(text));
}

/**
 * Returns the groups with only the charts that match `text`, including hidden ones; groups without a match are omitted.
 */
export function foundGroups(groups: readonly ShownGroup[], text: string): readonly ShownGroup[] {
  if (text === '') return groups;
  const found = groups.map(group => ({
    ...group,
    charts: [...group.charts, ...group.hidden].filter(chart => matches(chart, text)),
    hidden: [],
  }));
  return found.filter(({ charts }) => charts.length > 0);
}

export const alarmsOf = (events: readonly RunEvent[]): RunEvent[] =>
  events.filter(({ kind }) => kind === 'alarm' || kind === 'early_stop');

/** Returns the run's newest memory plan if it exceeds the memory that was available, otherwise null. */
export function shortageIn(events: readonly RunEvent[]): PlannedMemory | null {
  const plan = events.findLast(({ kind }) => kind === 'memory_plan');
  const { data } = plannedMemorySchema.safeParse(plan?.data);
  return data && exceedsMemory(data) ? data : null;
}

/** Whether the metrics are shown as a table. An evaluation is always shown as a table, because it has no steps. */
export const isTable = ({ run, settings, series }: DashboardState): boolean =>
  series.rows > 0 && (settings.table || Boolean(run?.status.episodes));
