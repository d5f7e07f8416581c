// Event marks below a chart, at the events' positions on the x axis. Of overlapping marks, only the most severe is
// drawn. extension/run-data/event-marks.ts determines the step and the kind of each mark.
import { markKinds, placeEvents, type MarkedEvent, type MarkKind } from '../event-marks';
import type { RunEvent } from '../run-events';

export interface Mark {
  kind: MarkKind;
  x: number;
  event: RunEvent;
}

/** Whether a mark is an alarm or an error. */
export const isSevere = (kind: MarkKind): boolean => kind === 'alarm' || kind === 'error';

/** The glyph of a mark, in text style (not a coloured emoji). */
export const glyphs: Record<MarkKind, string> = {
  alarm: '▲',
  error: '✕',
  refused: '⊘',
  version: '↻',
  resume: '▸',
  setting: '⚙\uFE0E',
  checkpoint: '●',
};

/**
 * Returns the marks of the events, sorted by position. `xOf` returns the x position of a step, or NaN for a step
 * without a position.
 */
export const marksOf = (events: readonly RunEvent[], xOf: (step: number) => number): Mark[] =>
  marksAt(
    placeEvents(events).filter((placed): placed is MarkedEvent => placed.mark !== undefined),
    xOf,
  );

/** Returns the marks of events whose steps are known, as `marksOf` does. */
export function marksAt(events: readonly MarkedEvent[], xOf: (step: number) => number): Mark[] {
  const marks = events.map(({ event, step, mark: kind }) => ({ kind, x: xOf(step), event }));
  return marks.filter(({ x }) => Number.isFinite(x)).sort((a, b) => a.x - b.x);
}

/**
 * Returns marks that are at least `distance` (in axis units) from each other. Of two closer marks, only the more severe
 * is returned.
 */
export function thinned(marks: readonly Mark[], distance: number): Mark[] {
  const kept: Mark[] = [];
  for (const kind of markKinds) {
    for (const mark of marks) {
      if (mark.kind === kind && kept.every(other => Math.abs(other.x - mark.x) >= distance)) kept.push(mark);
    }
  }
  return kept.sort((a, b) => a.x - b.x);
}
