// The reducer of the Sweep page. A request to continue or to stop stays pending until a snapshot shows its effect. Pure
// function.
import type { SweepSnapshot } from '../../extension/protocol/sweep-page';
import type { Theme } from '../shared/theme';
import type { SweepSettings, SweepState } from './state';

export type SweepEvent =
  | { readonly type: 'connected'; readonly snapshot: SweepSnapshot | null }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'requested'; readonly action: 'continue' | 'stop' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'chosen'; readonly part: Partial<SweepSettings> }
  | { readonly type: 'theme'; readonly theme: Theme };

export function reduce(state: SweepState, event: SweepEvent): SweepState {
  switch (event.type) {
    case 'connected': {
      const { snapshot } = event;
      if (!snapshot) return { ...state, connection: 'planning', snapshot: null };
      const isDone = state.requested === (snapshot.isRunning ? 'continue' : 'stop');
      return { ...state, connection: 'connected', snapshot, requested: isDone ? null : state.requested };
    }
    case 'failed':
      return { ...state, connection: { failed: event.message }, requested: null };
    case 'requested':
      return { ...state, requested: event.action, problem: null };
    case 'refused':
      return { ...state, requested: null, problem: event.message };
    case 'chosen': {
      const isSame = Object.entries(event.part).every(
        ([key, value]) => state.settings[key as keyof SweepSettings] === value,
      );
      return isSame ? state : { ...state, settings: { ...state.settings, ...event.part } };
    }
    case 'theme':
      return { ...state, theme: event.theme };
  }
}
