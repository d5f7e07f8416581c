// What the Episodes page keeps when it is hidden or restored, and the episodes that the settings choose from.
import type { EpisodeTable } from '../../extension/run-data/episode-table';
import type { Sort } from './listing';

/** Which episodes are listed. */
export type Mode = 'train' | 'val' | 'all';

/** Content of the right side: an episode's turns, its prompt group side by side, or its prompt over training. */
export type Reading = 'episode' | 'group' | 'training';

/** What the page keeps when it is hidden or restored. */
export interface EpisodesSettings {
  /** Which episodes are listed, unless the filter sets it. Null: training, if there is any. */
  readonly mode: Mode | null;
  /** Null: by step, group and member. */
  readonly sort: Sort | null;
  /** Id of the open episode. */
  readonly open: string | null;
  readonly reading: Reading;
  /** Over training, which episode to compare with. */
  readonly against: 'first' | 'before';
  readonly filter: string;
  readonly raw: boolean;
  readonly tokens: boolean;
}

/** Increased when the meaning of a setting changes. */
export const settingsSchema = 2;

export const firstSettings: EpisodesSettings = {
  mode: null,
  sort: null,
  open: null,
  reading: 'episode',
  against: 'first',
  filter: '',
  raw: false,
  tokens: false,
};

/** All episodes of the run; another object whenever rows have been added. */
export interface EpisodeData {
  readonly table: EpisodeTable;
  /** All rows in natural order: by step, group and member. */
  readonly order: Uint32Array;
  /** Modes for which there are episodes. */
  readonly modes: readonly Mode[];
}

/** The mode in use: the chosen one if there are such episodes. */
export const listedMode = ({ modes }: EpisodeData, { mode }: EpisodesSettings): Mode =>
  mode !== null && modes.includes(mode) ? mode : (modes[0] ?? 'train');
