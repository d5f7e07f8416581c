// What a user can do on the Episodes page; the views call it.
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { Sort } from './listing';
import type { EpisodesSettings, Mode, Reading } from './settings';

/** What the user can do on the page. */
export interface EpisodesActions {
  load(): void;
  filter(line: string): void;
  mode(mode: Mode): void;
  sort(sort: Sort | null): void;
  /** The same, with the list at its start. */
  sortFromStart(sort: Sort | null): void;
  /** The first index of the list on screen has changed. */
  scrolled(top: number): void;
  /** To the previous (−1) or next (1) step of training, or to the newest (0). */
  goStep(by: -1 | 0 | 1): void;
  open(row: EpisodeRow): void;
  openId(id: string): void;
  /** To an occurrence of the open episode's prompt, by its index. */
  goOccurrence(at: number): void;
  compareWith(against: EpisodesSettings['against']): void;
  readAs(reading: Reading): void;
  toggle(setting: 'raw' | 'tokens'): void;
  openTrace(): void;
  /** Reads the chosen episode again. */
  retry(): void;
  /** Back to the list. */
  back(): void;
}
