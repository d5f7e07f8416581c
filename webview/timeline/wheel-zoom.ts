// The zoom by turning the wheel, in the overview and in a step.
import type { Range } from './state';

/** A wheel event of 100 units widens or narrows the visible range by this factor. */
const wheelFactor = 1.25;

/** Returns the range after a turn of the wheel by `deltaY`; the value `at` keeps its position in the range. */
export function wheelZoomed({ from, to }: Range, at: number, deltaY: number): Range {
  const factor = wheelFactor ** (Math.max(-200, Math.min(200, deltaY)) / 100);
  const share = (at - from) / (to - from);
  const width = (to - from) * factor;
  return { from: at - share * width, to: at - share * width + width };
}
