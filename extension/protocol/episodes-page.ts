// Messages between the extension host and the Episodes page. The host sends all episodes of a run as columns
// (episode-table.ts), and sends new rows while the run plays more episodes. The page filters, sorts and lists the rows,
// and requests single episodes in full. The host, not the page, searches the texts of episodes, because the columns do
// not contain these texts.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { TextTerm } from '../run-data/episode-filter';
import type { EpisodeRows } from '../run-data/episode-table';
import type { ExplainedPart, HeatMaps } from './heat-maps';
import type { RunSummary } from './page-state';
import type { Episode } from '../run-data/episode';

export type EpisodeRef = Pick<Episode, 'step' | 'mode' | 'id'>;

export interface EpisodesSnapshot {
  run: RunSummary;
  /** Incremented when the rows sent so far become invalid; the page then requests a new snapshot. */
  epoch: number;
  rows: EpisodeRows;
  /**
   * Share of the run's episodes that is indexed, 0…1. Below 1 while the host reads the files of a run whose trainer was
   * too old to write an index.
   */
  read: number;
}

export const episodesReady: RequestType<null, EpisodesSnapshot> = { method: 'episodes/ready' };
/**
 * Returns a complete episode, with data URLs in place of the names of its pictures; null if the episode's file no longer
 * contains it.
 */
export const episodeOpen: RequestType<EpisodeRef, Episode | null> = { method: 'episodes/open' };
/** Opens the episode's reasoning trace in the editor. */
export const episodeTrace: NotificationType<EpisodeRef> = { method: 'episodes/trace' };
/** Exports the episodes that match a filter line as a data set; the host asks for format and file. */
export const episodesDataSet: NotificationType<{ filter: string }> = { method: 'episodes/dataSet' };
/** An episode's playback as a file: an animated GIF or a WebM video. `name` is the episode's id. */
export interface EpisodeMovie {
  kind: 'movie';
  name: string;
  format: 'gif' | 'webm';
  bytes: Uint8Array;
}

/** Writes the movie to a file that the user chooses. Returns false if the user cancels. */
export const episodesExport: RequestType<EpisodeMovie, boolean> = { method: 'episodes/export' };
/** Computes the heat maps of an episode's pictures; null if `episodeHeatEnd` cancelled the computation. */
export const episodeHeat: RequestType<EpisodeRef & { part: ExplainedPart }, HeatMaps | null> = {
  method: 'episodes/heat',
};
/** The current phase of the computation. */
export const episodeHeatPhase: NotificationType<{ phase: string }> = { method: 'episodes/heatPhase' };
/** Cancels the computation. */
export const episodeHeatEnd: NotificationType<null> = { method: 'episodes/heatEnd' };
/** An episode at which the page opens; `turn` is null for the episode's start. */
export interface EpisodeTarget {
  id: string;
  turn: number | null;
}
/** Opens an episode in the reader and scrolls to the turn, as soon as the page has the episode. */
export const episodesShow: NotificationType<EpisodeTarget> = { method: 'episodes/show' };

/** New rows; `from` is the number of the first new row. */
export const episodesGrew: NotificationType<Omit<EpisodesSnapshot, 'rows'> & { from: number; rows: EpisodeRows }> = {
  method: 'episodes/grew',
};

/**
 * Searches `rows` for episodes whose texts satisfy all terms. Returns the row numbers of these episodes in any order.
 * Null if another search has replaced this search, or if the row numbers have become invalid. `search` identifies the
 * search in progress notifications.
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
