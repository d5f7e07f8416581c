// The state of the Live page. It is immutable; only the reducer changes it.
import type { RunSummary } from '../../extension/protocol/page-state';
import type { WatchedEpisode } from '../../extension/protocol/trainer-link';
import type { Theme } from '../shared/theme';

/** Settings that are restored when the page is shown again. */
export interface PendingSettings {
  /** Tag to watch; empty if all tags are watched. */
  readonly tag: string;
  readonly follow: boolean;
}

export interface LiveState {
  /** `failed` is the error message of a failed connection. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly run: RunSummary | null;
  /** Tags of the run; empty until the trainer has sent the tags. */
  readonly tags: readonly string[];
  /** The latest episode sent by the host; null between rollouts. */
  readonly received: WatchedEpisode | null;
  /** The displayed episode: the received episode or an earlier one. */
  readonly shown: WatchedEpisode | null;
  readonly settings: PendingSettings;
  readonly theme: Theme;
}

export const firstSettings: PendingSettings = { tag: '', follow: true };

export const initialState = (settings: PendingSettings, theme: Theme): LiveState => ({
  connection: 'connecting',
  run: null,
  tags: [],
  received: null,
  shown: null,
  settings,
  theme,
});

/** Whether the trainer has sent reports, which needs a connection to its socket. */
export const isConnected = ({ tags, shown }: LiveState): boolean => tags.length > 0 || shown !== null;

/** Whether the user watches a single tag of the run. */
export const isTagChosen = ({ tags, settings }: LiveState): boolean => tags.includes(settings.tag);

/**
 * Whether the switch to the next episode is delayed by `lingerMs`. This is the case if `follow` is on, the displayed
 * episode has ended, and another episode has arrived.
 */
export function lingers({ received, shown, settings }: LiveState): boolean {
  return received !== null && shown !== null && received.id !== shown.id && settings.follow && shown.over;
}
