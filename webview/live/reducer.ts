// The reducer of the Live page. While the setting `follow` is on, the page switches to a received episode immediately.
// If the displayed episode has just ended, the page switches only at the event `lingered`, so that the user can read
// the end. While `follow` is off, the displayed episode stays. Pure function.
import type { LiveSnapshot } from '../../extension/protocol/live-page';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { WatchedEpisode, WatchedTurn } from '../../extension/protocol/trainer-link';
import type { Theme } from '../shared/theme';
import { lingers, type LiveState } from './state';

export type LiveEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly snapshot: LiveSnapshot }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'run'; readonly run: RunSummary }
  | { readonly type: 'tags'; readonly tags: readonly string[] }
  | { readonly type: 'episode'; readonly episode: WatchedEpisode | null }
  | ({ readonly type: 'tokens' } & NewTokens)
  | { readonly type: 'lingered' }
  | { readonly type: 'follow'; readonly on: boolean }
  | { readonly type: 'tag'; readonly tag: string }
  | { readonly type: 'theme'; readonly theme: Theme };

/** New tokens of the newest turn. They replace all tokens of the turn from index `at` on. */
export interface NewTokens {
  readonly id: string;
  readonly turn: number;
  readonly at: number;
  readonly tokens: WatchedTurn['tokens'];
}

export function reduce(state: LiveState, event: LiveEvent): LiveState {
  switch (event.type) {
    case 'connecting':
      return state.run ? state : { ...state, connection: 'connecting' };
    case 'connected': {
      const { run, tags, episode } = event.snapshot;
      return { ...state, connection: 'connected', run, tags, received: episode, shown: episode ?? state.shown };
    }
    case 'failed':
      return { ...state, connection: { failed: event.message } };
    case 'run':
      return { ...state, run: event.run };
    case 'tags':
      return { ...state, tags: event.tags };
    case 'episode':
      return advanced({ ...state, received: event.episode });
    case 'tokens':
      return withTokens(state, event);
    case 'lingered':
      return { ...state, shown: state.received ?? state.shown };
    case 'follow':
      return advanced({ ...state, settings: { ...state.settings, follow: event.on } });
    case 'tag':
      return { ...state, settings: { ...state.settings, tag: event.tag } };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

/**
 * Displays the received episode if it updates the displayed episode or if no episode is displayed. Displays another
 * episode only if `follow` is on and `lingers` returns false.
 */
function advanced(state: LiveState): LiveState {
  const { received, shown, settings } = state;
  if (!received) return state;
  const isOther = shown !== null && received.id !== shown.id;
  return isOther && (!settings.follow || lingers(state)) ? state : { ...state, shown: received };
}

/** Appends tokens to the newest turn; tokens of a finished turn or of another episode are dropped. */
function withTokens(state: LiveState, { id, turn, at, tokens }: NewTokens): LiveState {
  const newest = state.received?.id === id ? state.received.turns.at(-1) : undefined;
  if (!state.received || !newest || newest.turn !== turn || newest.outcome) return state;
  const extended: WatchedTurn = { ...newest, tokens: [...newest.tokens.slice(0, at), ...tokens] };
  const received = { ...state.received, turns: [...state.received.turns.slice(0, -1), extended] };
  return { ...state, received, shown: state.shown?.id === id ? received : state.shown };
}
