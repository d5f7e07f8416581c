// User actions of the Timeline page, called by the views.
import type { ShownStep } from './state';

export interface TimelineActions {
  load(): void;
  command(command: 'dashboard' | 'episodes'): void;
  openEpisode(id: string): void;
  /** Opens a step, or the overview of all steps (null). */
  open(step: ShownStep | null): void;
  /** Opens the nearest earlier or later step whose spans the run still contains. */
  move(by: -1 | 1): void;
  follow(on: boolean): void;
  showTable(on: boolean): void;
  /** Places the overview's mark on a step. The arrow keys move the mark, too. */
  mark(index: number): void;
  /** Shows the time range [from, to] of the step, in microseconds. */
  zoom(from: number, to: number): void;
  /** Shows a range of the overview. `from` and `to` are indices of steps. */
  zoomSteps(from: number, to: number): void;
  /** Zooms by a factor around the middle of the visible range. */
  zoomBy(factor: number): void;
  /** Moves the visible range by a share of its width. */
  panBy(share: number): void;
  showAll(): void;
  select(span: number | null): void;
  /** Selects the next or the previous span that matches the search. */
  nextMatch(by: -1 | 1): void;
  search(text: string): void;
  unfold(episodes: boolean): void;
  exportTrace(): void;
  dismiss(): void;
}
