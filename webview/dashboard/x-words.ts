// Words for places on the x axis.
import { formatDuration, formatTick } from '../shared/format';
import type { XAxis } from './series';

/** A tick of the axis. */
export const tickOfX = (value: number, axis: XAxis): string =>
  axis === 'time' ? formatDuration(value) : formatTick(value, 'number');

/** A row under the crosshair. */
export function placeInWords(x: number, axis: XAxis, step: number): string {
  if (axis === 'time') return formatDuration(x);
  return axis === 'episodes' ? `${Math.round(x)} ep.` : String(step);
}

/** What the axis counts, for pictures and tables. */
export const axisTitles: Record<XAxis, string> = {
  step: 'training step',
  time: 'run time',
  episodes: 'training episodes',
};
