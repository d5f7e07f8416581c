// The state of the Live page. It is immutable: every change is made by the reducer.
import type { RunSummary } from '../../extension/protocol/pages';
import type { WatchedEpisode } from '../../extension/protocol/trainer-link';
import type { Theme } from '../shared/theme';

/** What the page keeps when it is hidden or restored. */
export interface LiveSettings {
  /** Tag to watch; empty for all. */
  readonly tag: string;
  readonly follow: boolean;
}

export interface LiveState {
  /** `failed` is the message of a refused connection. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly run: RunSummary | null;
  /** Tags of the run; empty until the trainer has sent them. */
  readonly tags: readonly string[];
  /** The latest episode sent by the host; null between rollouts. */
  readonly received: WatchedEpisode | null;
  /** The episode in view: the received one, or an earlier one. */
  readonly shown: WatchedEpisode | null;
  readonly settings: LiveSettings;
  readonly theme: Theme;
}

export const firstSettings: LiveSettings = { tag: '', follow: true };

export const initialState = (settings: LiveSettings, theme: Theme): LiveState => ({
  connection: 'connecting',
  run: null,
  tags: [],
  received: null,
  shown: null,
  settings,
  theme,
});

/** Whether the user watches a single tag of the run. */
export const isTagChosen = ({ tags, settings }: LiveState): boolean => tags.includes(settings.tag);

/** Whether another episode has arrived while the one in view has just ended and should stay a moment longer. */
export function lingers({ received, shown, settings }: LiveState): boolean {
  return received !== null && shown !== null && received.id !== shown.id && settings.follow && shown.over;
}
