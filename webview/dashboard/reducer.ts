// The reducer of the Dashboard; its events are messages of the host and user actions. Pure function.
import type { DashboardSnapshot } from '../../extension/protocol/dashboard-page';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { PickedEpisode } from '../../extension/run-data/picked-episodes';
import type { RunEvent } from '../../extension/run-data/run-events';
import type { Theme } from '../shared/theme';
import { orderAfterMove, pinToggled } from './charts/arrangement';
import type { SeriesSummary } from '../charts/metric-series';
import { settingsSchema, type DashboardSettings } from './dashboard-settings';
import type { Sort } from './run/table-sorting';
import { groupsOf, type DashboardState } from './state';

export type ChartSetting = 'enlarged' | 'log' | 'clipped' | 'pinned';

export type DashboardEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly snapshot: DashboardSnapshot; readonly series: SeriesSummary }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'status'; readonly run: RunSummary }
  | ({ readonly type: 'grown' } & Growth)
  | { readonly type: 'columns'; readonly series: SeriesSummary }
  | { readonly type: 'picked'; readonly picked: readonly PickedEpisode[] }
  | { readonly type: 'read'; readonly read: number }
  | { readonly type: 'settings'; readonly part: Partial<DashboardSettings> }
  | { readonly type: 'full'; readonly id: string }
  | { readonly type: 'chart'; readonly id: string; readonly toggles: ChartSetting }
  | { readonly type: 'fold'; readonly group: string }
  | { readonly type: 'move'; readonly id: string; readonly to: number | string }
  | { readonly type: 'table'; readonly id: string; readonly sort: Sort | null }
  | { readonly type: 'search'; readonly text: string }
  | { readonly type: 'hover'; readonly row: number | null }
  | { readonly type: 'hover-by'; readonly rows: number }
  | { readonly type: 'open'; readonly event: RunEvent }
  | { readonly type: 'escape' }
  | { readonly type: 'refused'; readonly message: string | null }
  | { readonly type: 'theme'; readonly theme: Theme };

/** New rows and events of a running run. */
export interface Growth {
  readonly run: RunSummary;
  readonly events: readonly RunEvent[];
  readonly series: SeriesSummary;
}

export function reduce(state: DashboardState, event: DashboardEvent): DashboardState {
  const { settings } = state;
  switch (event.type) {
    case 'connecting':
      return state.run ? state : { ...state, connection: 'connecting' };
    case 'connected':
      return connected(state, event.snapshot, event.series);
    case 'failed':
      return { ...state, connection: { failed: event.message }, run: null };
    case 'status':
      return { ...state, run: event.run };
    case 'grown': {
      const events = event.events.length > 0 ? [...state.events, ...event.events] : state.events;
      return { ...state, run: event.run, series: event.series, events };
    }
    case 'columns':
      return { ...state, series: event.series };
    case 'picked':
      return { ...state, picked: event.picked };
    case 'read':
      return { ...state, read: event.read };
    case 'settings':
      return withSettings(state, event.part);
    case 'full':
      return { ...state, full: state.full === event.id ? null : event.id };
    case 'chart':
      return withSettings(
        state,
        event.toggles === 'pinned'
          ? pinToggled(settings, event.id)
          : { [event.toggles]: toggled(settings[event.toggles], event.id) },
      );
    case 'fold':
      return withSettings(state, { open: toggled(settings.open, event.group) });
    case 'move':
      return moved(state, event.id, event.to);
    case 'table': {
      const { [event.id]: _, ...others } = state.tables;
      return { ...state, tables: event.sort ? { ...others, [event.id]: event.sort } : others };
    }
    case 'search':
      return { ...state, search: event.text };
    case 'hover':
      return event.row === state.hovered ? state : { ...state, hovered: event.row };
    case 'hover-by': {
      const last = state.series.rows - 1;
      const from = state.hovered ?? last - Math.min(0, event.rows);
      return { ...state, hovered: Math.max(0, Math.min(last, from + event.rows)) };
    }
    case 'open':
      return {
        ...withSettings(state, { open: [...settings.open.filter(id => id !== 'events'), 'events'] }),
        opened: event.event,
      };
    case 'escape':
      if (state.full !== null) return { ...state, full: null };
      if (settings.zoom) return withSettings(state, { zoom: null });
      return settings.enlarged.length > 0 ? withSettings(state, { enlarged: [] }) : state;
    case 'refused':
      return { ...state, refusal: event.message };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

function connected(state: DashboardState, snapshot: DashboardSnapshot, series: SeriesSummary): DashboardState {
  const { run, events, meanings, episodes, scored, read, ending } = snapshot;
  const kept = snapshot.view as { schema?: number; view?: Partial<DashboardSettings> } | undefined;
  const adopts = state.isFresh && kept?.schema === settingsSchema;
  return {
    ...{
      ...state,
      connection: 'connected',
      run,
      events,
      meanings,
      episodes,
      scored,
      read,
      series,
      ending,
      isFresh: false,
    },
    settings: adopts ? { ...state.settings, ...kept.view, zoom: null } : state.settings,
    hovered: state.hovered === null || series.rows === 0 ? null : Math.min(state.hovered, series.rows - 1),
  };
}

const withSettings = (state: DashboardState, part: Partial<DashboardSettings>): DashboardState => ({
  ...state,
  settings: { ...state.settings, ...part },
});

/** Moves a chart within its group: by a number of positions, or to the place before another chart. */
function moved(state: DashboardState, id: string, to: number | string): DashboardState {
  const { settings } = state;
  const group = groupsOf(state).find(({ charts }) => charts.some(chart => chart.id === id));
  const ids = group?.charts.map(chart => chart.id) ?? [];
  const at = typeof to === 'string' ? ids.indexOf(to) : ids.indexOf(id) + to;
  if (!group || (typeof to === 'string' && at < 0)) return state;
  const index = Math.max(0, Math.min(ids.length - 1, at));
  const announcement = `${id} is ${index + 1} of ${ids.length} in ${group.title}`;
  return { ...withSettings(state, orderAfterMove(settings, group, id, index)), announcement };
}

const toggled = (ids: readonly string[], id: string): string[] =>
  ids.includes(id) ? ids.filter(other => other !== id) : [...ids, id];
