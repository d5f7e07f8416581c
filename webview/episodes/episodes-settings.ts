// The settings of the Episodes page that are restored when it is shown again, and the episode data to which they apply.
import type { ExplainedPart } from '../../extension/protocol/heat-maps';
import type { EpisodeTable } from '../../extension/run-data/episode-table';
import type { Sort } from './list/listing';

/** Listed episodes: training, validation, or all. */
export type Mode = 'train' | 'val' | 'all';

/**
 * What the reader shows: the open episode's turns, one turn after another (`playback`), the episodes of its prompt group
 * side by side, their pictures as film strips (`film`), or (`training`) the open episode beside an episode of the same
 * prompt at another step.
 */
export type Reading = 'episode' | 'playback' | 'group' | 'film' | 'training';

/** Settings that are restored when the page is shown again. */
export interface EpisodesSettings {
  /**
   * Mode of the listed episodes. Ignored if the filter line sets the mode. Null selects training, or validation if
   * there are no training episodes.
   */
  readonly mode: Mode | null;
  /** Sort order; null sorts by step, group and member. */
  readonly sort: Sort | null;
  /** Id of the episode that the user opened last; null if none. */
  readonly open: string | null;
  readonly reading: Reading;
  /**
   * Used if `reading` is `training`: the step whose episode is shown beside the open episode. Only steps with episodes
   * of the same prompt are considered. `first` is the first such step; `before` is the latest such step before the open
   * episode's step.
   */
  readonly against: 'first' | 'before';
  readonly filter: string;
  readonly raw: boolean;
  readonly tokens: boolean;
  /** Whether heat maps are over pictures. */
  readonly heat: boolean;
  /** The tokens that heat maps explain. */
  readonly explains: ExplainedPart;
  /** Whether pictures are larger. */
  readonly large: boolean;
  /** Speed of the playback (player/playback.ts). */
  readonly speed: number;
  /** Whether the playback starts again after its end. */
  readonly loop: boolean;
}

/** Settings that are switched on and off. */
export type Toggled = 'raw' | 'tokens' | 'heat' | 'large';

/** Version of the settings; increased when the meaning of a setting changes. */
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
  heat: false,
  explains: 'response',
  large: false,
  speed: 1,
  loop: false,
};

/** All episodes of the run. The object is replaced whenever rows have been added. */
export interface EpisodeData {
  readonly table: EpisodeTable;
  /** All rows in natural order: by step, group and member. */
  readonly order: Uint32Array;
  /** Modes that have episodes. */
  readonly modes: readonly Mode[];
}

/** Returns the mode in use: the mode of the settings if this mode has episodes, else the first available mode. */
export const listedMode = ({ modes }: EpisodeData, { mode }: EpisodesSettings): Mode =>
  mode !== null && modes.includes(mode) ? mode : (modes[0] ?? 'train');
