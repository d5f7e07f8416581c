// Navigation and view settings of the Episodes page, kept while the page is hidden and across a window reload.
import type { Sort } from './listing';

/** Content of the right side: an episode's turns, its prompt group side by side, or its prompt over training. */
export type Reading = 'episode' | 'group' | 'training';

export interface EpisodesView {
  /** Which episodes are listed, unless the filter sets it. Null: training, if there is any. */
  mode: 'train' | 'val' | 'all' | null;
  /** Null: by step, group and member. */
  sort: Sort | null;
  /** Id of the open episode. */
  open: string | null;
  reading: Reading;
  /** Over training, which episode to compare with. */
  against: 'first' | 'before';
  filter: string;
  raw: boolean;
  tokens: boolean;
}

/** Increased when the meaning of a setting changes. */
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
