// Messages between the extension host and the Episodes page. The host tells of all of a run's episodes in columns (episode-table.ts) and of
// later ones as they come; the page filters, sorts and lists them itself and asks for whole episodes one at a time. Texts are looked
// through by the host, which has the files.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { EpisodeRows } from './episode-table';
import type { RunSummary } from './pages';
import type { Episode } from './run-folder';

export type EpisodeRef = Pick<Episode, 'step' | 'mode' | 'id'>;

export interface EpisodesSnapshot {
  run: RunSummary;
  /** Raised when rows that were sent are void: the page asks anew. */
  epoch: number;
  rows: EpisodeRows;
  /** Share of the run's episodes that is known, 0…1; below 1 while files of an older trainer are gone through. */
  read: number;
}

export interface TextTerm {
  /** What to find in states, answers, final state or error, whatever the case. */
  value: string;
  not: boolean;
}

export const episodesReady: RequestType<null, EpisodesSnapshot> = { method: 'episodes/ready' };
/** A whole episode; null when its file no longer has it. */
export const episodeOpen: RequestType<EpisodeRef, Episode | null> = { method: 'episodes/open' };
/** Open the episode's reasoning trace in the editor. */
export const episodeTrace: NotificationType<EpisodeRef> = { method: 'episodes/trace' };
/** Further rows, from row `from` on. */
export const episodesGrew: NotificationType<Omit<EpisodesSnapshot, 'rows'> & { from: number; rows: EpisodeRows }> = {
  method: 'episodes/grew',
};

/**
 * Those of `rows` whose texts pass all terms, in no order; null where another search took its place or the rows are void. `search` names it
 * in the notifications on the way.
 */
export const episodesSearch: RequestType<
  { search: number; epoch: number; terms: TextTerm[]; rows: Int32Array },
  Int32Array | null
> = { method: 'episodes/search' };
/** Rows found so far that were not told yet, and the share that was looked through. */
export const episodesFound: NotificationType<{ search: number; found: Int32Array; share: number }> = {
  method: 'episodes/found',
};
/** Nobody waits for the search any more. */
export const episodesSearchEnd: NotificationType<null> = { method: 'episodes/searchEnd' };
