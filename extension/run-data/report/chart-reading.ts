// The values of a chart in an HTML report, which the report's script reads to show them under the pointer.
import type { Unit } from '../../common/format-values';
import type { Range } from '../charts/axis';

export interface ChartReading {
  /** The picture's size and the area of the lines inside it, in SVG units. */
  readonly area: { left: number; right: number; top: number; bottom: number; width: number; height: number };
  readonly x: Range;
  readonly y: Range;
  readonly log: boolean;
  readonly unit: Unit;
  readonly lines: readonly { label: string; colour: string; points: readonly (readonly [x: number, y: number])[] }[];
}

export interface ReadValue {
  readonly label: string;
  readonly colour: string;
  readonly y: number;
}

/**
 * Returns the position of the point that is closest to `x`, and the values of all lines that have a point there; null
 * without a point.
 */
export function valuesAt({ lines }: Pick<ChartReading, 'lines'>, x: number): { x: number; values: ReadValue[] } | null {
  let closest = Number.NaN;
  for (const { points } of lines)
    for (const [at] of points) if (!(Math.abs(at - x) >= Math.abs(closest - x))) closest = at;
  if (Number.isNaN(closest)) return null;
  const values = lines.flatMap(({ label, colour, points }) => {
    const found = points.find(([at]) => at === closest);
    return found ? [{ label, colour, y: found[1] }] : [];
  });
  return { x: closest, values };
}

/** Returns the position of the next point after `x`, or before it if `direction` is −1; null beyond the ends. */
export function neighbour({ lines }: Pick<ChartReading, 'lines'>, x: number, direction: 1 | -1): number | null {
  const further = lines.flatMap(({ points }) => points.map(([at]) => at)).filter(at => (at - x) * direction > 0);
  if (further.length === 0) return null;
  return further.reduce((nearest, at) => ((at - nearest) * direction < 0 ? at : nearest));
}
