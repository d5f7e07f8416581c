// Messages between the extension host and the Episodes page. The host sends all episodes of a run as columns
// (episode-table.ts), and later ones as they are played. The page filters, sorts and lists them itself and requests
// single episodes in full. The host searches texts, because it has the files.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { TextTerm } from '../run-data/episode-filter';
import type { EpisodeRows } from '../run-data/episode-table';
import type { RunSummary } from './pages';
import type { Episode } from '../run-data/episode';

export type EpisodeRef = Pick<Episode, 'step' | 'mode' | 'id'>;

export interface EpisodesSnapshot {
  run: RunSummary;
  /** Incremented when the rows sent so far become invalid; the page then requests a new snapshot. */
  epoch: number;
  rows: EpisodeRows;
  /** Share of the run's episodes that is indexed, 0…1. Below 1 while files of an older trainer are scanned. */
  read: number;
}

export const episodesReady: RequestType<null, EpisodesSnapshot> = { method: 'episodes/ready' };
/** A complete episode; null if its file no longer contains it. */
export const episodeOpen: RequestType<EpisodeRef, Episode | null> = { method: 'episodes/open' };
/** Opens the episode's reasoning trace in the editor. */
export const episodeTrace: NotificationType<EpisodeRef> = { method: 'episodes/trace' };
/** New rows, from row `from` on. */
export const episodesGrew: NotificationType<Omit<EpisodesSnapshot, 'rows'> & { from: number; rows: EpisodeRows }> = {
  method: 'episodes/grew',
};

/**
 * Returns the rows among `rows` whose texts satisfy all terms, in any order. Null if another search has replaced this
 * one or the rows are invalid. `search` identifies it in progress notifications.
 */
export const episodesSearch: RequestType<
  { search: number; epoch: number; terms: TextTerm[]; rows: Int32Array },
  Int32Array | null
> = { method: 'episodes/search' };
/** Newly found rows, and the share of rows searched. */
export const episodesFound: NotificationType<{ search: number; found: Int32Array; share: number }> = {
  method: 'episodes/found',
};
/** Cancels the search. */
export const episodesSearchEnd: NotificationType<null> = { method: 'episodes/searchEnd' };
