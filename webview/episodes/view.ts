// The Episodes page's own navigation and settings: what is kept while the page is hidden and across a reload of the window.
import type { Sort } from './listing';

/** What the right side shows: an episode's turns, its prompt group side by side, or its prompt over training. */
export type Reading = 'episode' | 'group' | 'training';

export interface EpisodesView {
  /** Which episodes are listed, where the filter does not say. Null: training, where there is any. */
  mode: 'train' | 'val' | 'all' | null;
  /** Null lists by step, group and member. */
  sort: Sort | null;
  /** Id of the open episode. */
  open: string | null;
  reading: Reading;
  /** Over training, what an episode is compared with. */
  against: 'first' | 'before';
  filter: string;
  raw: boolean;
  tokens: boolean;
}

/** Raised when the meaning of a setting changes. */
export const viewSchema = 2;

export const firstView: EpisodesView = {
  mode: null,
  sort: null,
  open: null,
  reading: 'episode',
  against: 'first',
  filter: '',
  raw: false,
  tokens: false,
};
