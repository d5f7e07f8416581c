// What a resume from an earlier checkpoint discards: the later steps, checkpoints and events of the run. The terminal
// and the editor name it before anything is removed. A resume from the newest checkpoint discards nothing in this
// sense, because it only repeats steps that no checkpoint contains. Pure functions.
import type { RunEvent } from './run-events';

/** The part of a run that a resume from the checkpoint of step `from` removes. */
export interface DiscardedWork {
  from: number;
  /** Last finished step of the run. */
  to: number;
  checkpoints: number;
  events: number;
}

/**
 * Returns what a resume from the checkpoint of step `from` discards; null if the run has no later checkpoint.
 * `checkpoints` are the steps of all checkpoints. `finished` is the number of finished steps according to the status.
 */
export function discardedWork(
  from: number,
  run: { finished: number; checkpoints: readonly number[]; events: readonly Pick<RunEvent, 'step'>[] },
): DiscardedWork | null {
  const later = run.checkpoints.filter(step => step > from);
  if (later.length === 0) return null;
  const events = run.events.filter(({ step }) => step > from);
  const to = [...later, ...events.map(({ step }) => step)].reduce((last, step) => Math.max(last, step), run.finished);
  return { from, to, checkpoints: later.length, events: events.length };
}

/** Formats discarded work: `3 steps (11 to 13), 2 checkpoints and 5 events`. */
export function formatDiscarded({ from, to, checkpoints, events }: DiscardedWork): string {
  const steps = to - from === 1 ? `1 step (${to})` : `${to - from} steps (${from + 1} to ${to})`;
  const parts = [steps, counted(checkpoints, 'checkpoint'), ...(events > 0 ? [counted(events, 'event')] : [])];
  return `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
