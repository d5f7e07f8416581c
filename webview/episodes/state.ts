// The state of the Episodes page; only the reducer changes it. The table of up to 100,000 episodes is not copied: rows
// are appended in place, and a new `data` object marks the change. List items are created when they are rendered.
import { listedMode, type EpisodeData, type EpisodesSettings } from './episodes-settings';
import type { RunSummary } from '../../extension/protocol/page-state';
import { EpisodeTable } from '../../extension/run-data/episode-table';
import type { Episode } from '../../extension/run-data/episode';
import { formatNumber, formatPercent } from '../shared/format';
import type { Theme } from '../shared/theme';
import type { Heats } from './heat/heats';
import type { Listing } from './list/listing';
import type { Query } from './list/query';
import { firstPlayer, type Player } from './player/playback';
import type { Subject } from './reader/reader-subject';

/** The listed episodes: the matches of the filter that have been found so far. */
export interface Matches {
  readonly listing: Listing;
  /** Number of successful listed episodes. */
  /** Null if the success of no matching episode is known. */
  readonly solved: number | null;
  /** Share of the episodes that a running text search has read; null if no search is running. */
  readonly searched: number | null;
}

/** Content of the reader. An entry of `others` is null if the run's files no longer contain the episode. */
export type Shown =
  | {
      readonly kind: 'episode';
      readonly subject: Subject;
      readonly episode: Episode;
      readonly others: readonly (Episode | null)[];
    }
  | { readonly kind: 'failed'; readonly title: string; readonly text: string; readonly canRetry: boolean };

/** An export of the playback in progress, or its failure. */
export type Movie =
  | { readonly kind: 'working'; readonly text: string; readonly canCancel: boolean }
  | { readonly kind: 'failed'; readonly text: string };

export interface EpisodesState {
  /** `failed` is the error message of a failed connection. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly run: RunSummary | null;
  /** Share of the run's episodes that the host has indexed, 0 to 1. */
  readonly read: number;
  readonly data: EpisodeData;
  /** The query computed from mode and filter; null before the first snapshot. */
  readonly query: Query | null;
  readonly matches: Matches | null;
  /** Error message of the text search; null if it did not fail. */
  readonly searchFailure: string | null;
  /** Index of the first visible row of the list. */
  readonly top: number;
  /** The selected episode. After it has been loaded, `shown` contains it. */
  readonly subject: Subject | null;
  readonly shown: Shown | null;
  readonly heats: Heats;
  readonly player: Player;
  /** Null if no export is in progress and the last export did not fail. */
  readonly movie: Movie | null;
  /** Whether a narrow page shows the list or the reader. */
  readonly front: 'list' | 'reader';
  readonly settings: EpisodesSettings;
  readonly theme: Theme;
}

export const initialState = (settings: EpisodesSettings, theme: Theme): EpisodesState => ({
  connection: 'connecting',
  run: null,
  read: 1,
  data: { table: new EpisodeTable(), order: new Uint32Array(0), modes: [] },
  query: null,
  matches: null,
  searchFailure: null,
  top: 0,
  subject: null,
  shown: null,
  heats: new Map(),
  player: firstPlayer,
  movie: null,
  front: 'list',
  settings,
  theme,
});

/** Whether no episode matches the filter; false while a search is running. */
export const matchesNothing = ({ data, matches }: EpisodesState): boolean =>
  data.table.rows > 0 && matches?.listing.rows.length === 0 && matches.searched === null;

/**
 * Returns the line below the filter. It contains the number of episodes, the success rate, the share of the episodes
 * that has been searched, and the share that has been indexed.
 */
export function listFacts({ data, query, matches, read, searchFailure }: EpisodesState): string {
  if (data.table.rows === 0) return read < 1 ? 'reading the episodes' : '';
  if (!query || !matches || searchFailure !== null) return '';
  const reading = read < 1 ? [`reading the episodes, ${formatPercent(read)}`] : [];
  const searched = matches.searched === null ? [] : [`searched ${formatPercent(matches.searched)}`];
  return [summary(matches, query.all), ...searched, ...reading].join(' · ');
}

/** Returns the filter line of the listed episodes, with the mode of the list. */
export function listedFilter({ data, query, settings }: EpisodesState): string {
  const mode = listedMode(data, settings);
  const term = mode === 'all' || query?.namesMode === true ? '' : `mode:${mode}`;
  return [term, settings.filter.trim()].filter(Boolean).join(' ');
}

/** Formats the matches: `96 of 128 episodes · 41.2 % success`. */
function summary({ listing: { rows }, solved }: Matches, all: number): string {
  const number = (count: number): string => (count < 10_000 ? String(count) : formatNumber(count));
  const count = rows.length === all ? `${number(all)} episodes` : `${number(rows.length)} of ${number(all)} episodes`;
  return rows.length === 0 || solved === null ? count : `${count} · ${formatPercent(solved / rows.length)} success`;
}

/** Problems of the filter line, or the error message of the text search; empty if there are none. */
export function listProblems({ data, query, searchFailure }: EpisodesState): string {
  if (searchFailure !== null) return searchFailure;
  return data.table.rows === 0 ? '' : (query?.problems.join('; ') ?? '');
}
