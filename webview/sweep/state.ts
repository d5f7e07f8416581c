// The immutable state of the Sweep page; only the reducer changes it.
import type { SweepSnapshot } from '../../extension/protocol/sweep-page';
import type { Theme } from '../shared/theme';

/** Settings that are restored when the page is shown again. */
export interface SweepSettings {
  /** Key of the metric; empty for the validation success. */
  readonly metric: string;
  /** Which value of each run counts. */
  readonly at: 'last' | 'best';
  /** Whether runs that have not finished count, too. */
  readonly unfinished: boolean;
  /** Labels of the two compared arms; empty, or unknown, for the arms that the page chooses. */
  readonly base: string;
  readonly other: string;
}

export interface SweepState {
  /** `planning` until the sweep has been planned. */
  readonly connection: 'connecting' | 'planning' | 'connected' | { readonly failed: string };
  readonly snapshot: SweepSnapshot | null;
  /** Request whose answer is awaited. */
  readonly requested: 'continue' | 'stop' | null;
  /** Why the last request failed; null if none did. */
  readonly problem: string | null;
  readonly settings: SweepSettings;
  readonly theme: Theme;
}

export const firstSettings: SweepSettings = { metric: '', at: 'last', unfinished: false, base: '', other: '' };

export const initialState = (settings: SweepSettings, theme: Theme): SweepState => ({
  connection: 'connecting',
  snapshot: null,
  requested: null,
  problem: null,
  settings,
  theme,
});
