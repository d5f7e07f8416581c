// The reducer of the Query page. While a query runs, the earlier result stays displayed. Pure function.
import type { QueryAnswer, QueryContext } from '../../extension/protocol/query-page';
import type { Theme } from '../shared/theme';
import type { ChartChoice, QueryState } from './state';

export type QueryEvent =
  | { readonly type: 'connected'; readonly context: QueryContext }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'written'; readonly sql: string }
  | { readonly type: 'started' }
  | { readonly type: 'answered'; readonly answer: QueryAnswer }
  | { readonly type: 'charted'; readonly part: Partial<ChartChoice> }
  | { readonly type: 'theme'; readonly theme: Theme };

export function reduce(state: QueryState, event: QueryEvent): QueryState {
  switch (event.type) {
    case 'connected':
      return { ...state, context: event.context };
    case 'failed':
      return { ...state, running: false, error: event.message };
    case 'written':
      return event.sql === state.settings.sql ? state : { ...state, settings: { ...state.settings, sql: event.sql } };
    case 'started':
      return { ...state, running: true, error: null, cancelled: false };
    case 'answered': {
      const { answer } = event;
      if ('cancelled' in answer) return { ...state, running: false, cancelled: true };
      if ('error' in answer) return { ...state, running: false, error: answer.error };
      return { ...state, running: false, result: answer.result };
    }
    case 'charted':
      return { ...state, settings: { ...state.settings, chart: { ...state.settings.chart, ...event.part } } };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}
