// Messages between the extension host and the Timeline page. The host sends the seconds per lane of all steps when the
// page opens, and those of each further step when it ends. The spans of a step are read when the page asks for them.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { StepSummary, StepTimeline } from '../run-data/timeline';
import type { RunSummary } from './page-state';

/** What changes while a run trains. */
export interface TimelineFacts {
  run: RunSummary;
  /** Steps whose spans are kept, ascending. */
  kept: number[];
  /** Changes whenever the trainer has written the step in progress anew; empty if none is in progress. */
  current: string;
}

export interface TimelineSnapshot extends TimelineFacts {
  steps: StepSummary[];
}

export const timelineReady: RequestType<null, TimelineSnapshot> = { method: 'timeline/ready' };

/** Steps that have ended since the last message, and the current facts. */
export const timelineGrown: NotificationType<TimelineFacts & { steps: StepSummary[] }> = { method: 'timeline/grown' };

/** Returns the spans of a step, or of the step in progress; null if they are not kept. */
export const timelineStepAt: RequestType<{ step: number | 'current' }, StepTimeline | null> = {
  method: 'timeline/step',
};

/** Writes the kept steps of a range as a Chrome trace, in a file that the user chooses; false if the user cancels. */
export const timelineExport: RequestType<{ from: number; to: number }, boolean> = { method: 'timeline/export' };

export type TimelineCommand =
  | { command: 'dashboard' | 'episodes' }
  /** Opens an episode by its id. */
  | { command: 'episode'; id: string };
export const timelineCommand: NotificationType<TimelineCommand> = { method: 'timeline/command' };
