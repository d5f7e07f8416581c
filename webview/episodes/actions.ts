// User actions of the Episodes page, called by the views.
import type { ExplainedPart } from '../../extension/protocol/heat-maps';
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { Sort } from './list/listing';
import type { EpisodesSettings, Mode, Reading, Toggled } from './episodes-settings';
import type { PlayerCommand } from './player/playback';

export interface EpisodesActions {
  load(): void;
  filter(line: string): void;
  mode(mode: Mode): void;
  sort(sort: Sort | null): void;
  /** Sorts the list and scrolls it to its start. */
  sortFromStart(sort: Sort | null): void;
  /** Reports the index of the first visible row of the list. */
  scrolled(top: number): void;
  /** Scrolls to the previous (−1), the next (1) or the newest (0) training step. */
  goStep(by: -1 | 0 | 1): void;
  open(row: EpisodeRow): void;
  openId(id: string): void;
  /** Opens an episode as a column of turns, and scrolls to a turn. */
  openTurn(id: string, turn: number): void;
  /**
   * Shows the open episode's prompt at another step: `at` is an index into the prompt's occurrences
   * (reader/over-training.ts).
   */
  goOccurrence(at: number): void;
  compareWith(against: EpisodesSettings['against']): void;
  readAs(reading: Reading): void;
  toggle(setting: Toggled): void;
  /** Selects the tokens that heat maps explain. */
  explain(part: ExplainedPart): void;
  /** Computes heat maps again after a failure. */
  retryHeat(): void;
  movePlayer(command: PlayerCommand): void;
  /** Sets the speed of the playback; 1 is normal. */
  playAt(speed: number): void;
  loopPlayback(loop: boolean): void;
  exportMovie(format: 'gif' | 'webm'): void;
  /** Ends the recording of a video. */
  cancelMovie(): void;
  openTrace(): void;
  /** Exports the listed episodes as a data set. */
  exportDataSet(): void;
  /** Requests the selected episode again after a failure. */
  retry(): void;
  /** Shows the list again on a narrow page. */
  back(): void;
}
