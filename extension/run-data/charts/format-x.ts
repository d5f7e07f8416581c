// Labels for positions on the x axis.
import { formatDuration, formatTick } from '../../common/format-values';

/** Unit of the x axis: step number, seconds of run time, or number of training episodes. */
export type XAxis = 'step' | 'time' | 'episodes';

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
