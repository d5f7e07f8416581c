// The events of the Log page, and their effect on the state. Pure.
import type { LogSnapshot } from '../../extension/protocol/log-page';
import { listOf, type LogState, type ViewSettings } from './state';

export type LogEvent =
  | { type: 'loading' }
  | { type: 'loaded'; snapshot: LogSnapshot }
  | { type: 'failed'; message: string }
  | { type: 'grown'; added: Omit<LogSnapshot, 'cut'> }
  | { type: 'settings'; settings: Partial<ViewSettings> }
  | { type: 'search'; text: string }
  | { type: 'select'; key: string | null };

export function reduce(state: LogState, event: LogEvent): LogState {
  switch (event.type) {
    case 'loading':
      return { ...state, failure: null };
    case 'loaded': {
      const { run, entries, cut } = event.snapshot;
      return listed({ ...state, run, entries, cut, selected: null });
    }
    case 'failed':
      return { ...state, failure: event.message };
    case 'grown': {
      if (!state.run) return state; // before the first snapshot, which will include these entries
      const { run, entries } = event.added;
      if (entries.length === 0) return { ...state, run };
      return listed({ ...state, run, entries: [...state.entries, ...entries] });
    }
    case 'settings':
      return listed({ ...state, settings: { ...state.settings, ...event.settings } });
    case 'search':
      return event.text === state.search ? state : listed({ ...state, search: event.text });
    case 'select':
      return { ...state, selected: event.key };
  }
}

const listed = (state: LogState): LogState => ({ ...state, list: listOf(state) });
