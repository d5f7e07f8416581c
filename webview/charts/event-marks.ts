// Event marks below a chart, at the events' positions on the x axis. Of overlapping marks, only the most severe is
// drawn.
import type { RunEvent } from '../../extension/run-data/run-events';

export type MarkKind = 'alarm' | 'error' | 'version' | 'setting' | 'checkpoint';

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
  version: '↻',
  setting: '⚙\uFE0E',
  checkpoint: '●',
};

const kinds: Partial<Record<RunEvent['kind'], MarkKind>> = {
  alarm: 'alarm',
  early_stop: 'alarm',
  environment_error: 'error',
  environment_version: 'version',
  environment_reload: 'version',
  setting: 'setting',
  checkpoint: 'checkpoint',
};

/** Kinds of marks, most severe first. */
const order: MarkKind[] = ['alarm', 'error', 'version', 'setting', 'checkpoint'];

/** Returns the mark for an event's kind; undefined for kinds that are not drawn. */
export const markOf = (event: RunEvent): MarkKind | undefined => kinds[event.kind];

/**
 * Returns the marks of the events, sorted by position. `xOf` returns an event's x position, or NaN for an event without
 * a position.
 */
export function marksOf(events: readonly RunEvent[], xOf: (event: RunEvent) => number): Mark[] {
  const marks: Mark[] = [];
  for (const event of events) {
    const kind = markOf(event);
    const x = kind ? xOf(event) : Number.NaN;
    if (kind && Number.isFinite(x)) marks.push({ kind, x, event });
  }
  return marks.sort((a, b) => a.x - b.x);
}

/**
 * Returns marks that are at least `distance` (in axis units) from each other. Of two closer marks, only the more severe
 * is returned.
 */
export function thinned(marks: readonly Mark[], distance: number): Mark[] {
  const kept: Mark[] = [];
  for (const kind of order) {
    for (const mark of marks) {
      if (mark.kind === kind && kept.every(other => Math.abs(other.x - mark.x) >= distance)) kept.push(mark);
    }
  }
  return kept.sort((a, b) => a.x - b.x);
}
