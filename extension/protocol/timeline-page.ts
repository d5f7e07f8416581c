// Messages between the extension host and the Timeline page. When the page opens, the host sends the seconds per lane
// of every step that has ended. When a further step ends, the host sends the seconds of that step. The spans of a step
// are read when the page asks for them.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { StepSummary, StepTimeline } from '../run-data/timeline';
import type { RunSummary } from './page-state';

/** Data of the page that change while a run trains. */
export interface TimelineFacts {
  run: RunSummary;
  /** Steps whose spans are in the run folder, ascending. */
  kept: number[];
  /**
   * A text that changes whenever the trainer has rewritten the spans of the step in progress; empty if no step is in
   * progress.
   */
  current: string;
}

export interface TimelineSnapshot extends TimelineFacts {
  steps: StepSummary[];
}

export const timelineReady: RequestType<null, TimelineSnapshot> = { method: 'timeline/ready' };

/** Steps that have ended since the last message, and the current values of the other data. */
export const timelineGrown: NotificationType<TimelineFacts & { steps: StepSummary[] }> = { method: 'timeline/grown' };

/** Returns the spans of a step, or of the step in progress; null if the run folder does not contain them. */
export const timelineStepAt: RequestType<{ step: number | 'current' }, StepTimeline | null> = {
  method: 'timeline/step',
};

/**
 * Writes the spans of a range of steps as a Chrome trace to a file that the user chooses. Steps whose spans are not in
 * the run folder are left out. Returns false if the user cancels.
 */
export const timelineExport: RequestType<{ from: number; to: number }, boolean> = { method: 'timeline/export' };

export type TimelineCommand =
  | { command: 'dashboard' | 'episodes' }
  /** Opens an episode by its id. */
  | { command: 'episode'; id: string };
export const timelineCommand: NotificationType<TimelineCommand> = { method: 'timeline/command' };
