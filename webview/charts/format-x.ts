// Labels for positions on the x axis.
import { formatDuration, formatTick } from '../shared/format';
import type { XAxis } from './metric-series';

/** Returns the label of a tick. */
export const tickOfX = (value: number, axis: XAxis): string =>
  axis === 'time' ? formatDuration(value) : formatTick(value, 'number');

/** Returns the label of the crosshair at position `x`; `step` is the training step at this position. */
export function formatX(x: number, axis: XAxis, step: number): string {
  if (axis === 'time') return formatDuration(x);
  return axis === 'episodes' ? `${Math.round(x)} ep.` : String(step);
}

/** Titles of the x axis in pictures and tables. */
export const axisTitles: Record<XAxis, string> = {
  step: 'training step',
  time: 'run time',
  episodes: 'training episodes',
};
