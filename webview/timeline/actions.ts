// User actions of the Timeline page, called by the views.
import type { ShownStep } from './state';

export interface TimelineActions {
  load(): void;
  command(command: 'dashboard' | 'episodes'): void;
  openEpisode(id: string): void;
  /** Opens a step, or the overview of all steps (null). */
  open(step: ShownStep | null): void;
  /** Opens the previous or the next step that is kept. */
  move(by: -1 | 1): void;
  follow(on: boolean): void;
  showTable(on: boolean): void;
  /** Marks a step of the overview. */
  mark(index: number): void;
  /** Shows the time range [from, to] of the step, in microseconds. */
  zoom(from: number, to: number): void;
  /** Shows a range of the overview, in steps by index. */
  zoomSteps(from: number, to: number): void;
  /** Zooms by a factor around the middle of what is shown. */
  zoomBy(factor: number): void;
  /** Moves what is shown by a share of its width. */
  panBy(share: number): void;
  showAll(): void;
  select(span: number | null): void;
  /** Selects the next span of the list of matches. */
  nextMatch(by: -1 | 1): void;
  search(text: string): void;
  unfold(episodes: boolean): void;
  exportTrace(): void;
  dismiss(): void;
}
