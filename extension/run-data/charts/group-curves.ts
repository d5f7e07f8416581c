// Aggregates the curves of runs that differ only by seed: the mean over seeds and, from three seeds on, the 95 %
// interval of this mean (extension/common/mean-estimate.ts). With fewer seeds, an interval would be too wide to say
// anything, so the single seeds are drawn. Also computes the group's final and best values. Pure functions. NaN marks
// steps without a value.
import { smooth } from '../../common/smoothing';
import { estimate, type Estimate } from '../../common/mean-estimate';
import { lowerBound, type Point } from './curve';

/** The values of a key in a run. `steps` increases; both arrays have the same length. */
export interface RunCurve {
  steps: Float64Array;
  values: Float64Array;
}

export interface GroupCurve {
  mean: Point[];
  /** 95 % interval at each position for which at least `intervalSeeds` seeds have a value; undefined if there is none. */
  band?: { low: Point[]; high: Point[] };
}

/**
 * Returns the finite points of a run's curve, smoothed. `xs` are the positions of the rows on the x axis; rows beyond
 * their end are left out.
 */
export function pointsOf({ steps, values }: RunCurve, smoothing: number, xs: Float64Array = steps): Point[] {
  const points: Point[] = [];
  smooth(values, smoothing).forEach(
    (y, row) => Number.isFinite(y) && row < xs.length && points.push({ x: xs[row], y }),
  );
  return points;
}

/** Returns the mean curve over seeds. The points of each seed are sorted by position. */
export function groupCurve(seeds: readonly (readonly Point[])[]): GroupCurve {
  const byPosition = new Map<number, number[]>();
  for (const points of seeds)
    for (const { x, y } of points) {
      const values = byPosition.get(x);
      if (values) values.push(y);
      else byPosition.set(x, [y]);
    }
  const curve: GroupCurve & Required<Pick<GroupCurve, 'band'>> = { mean: [], band: { low: [], high: [] } };
  for (const [x, values] of [...byPosition].sort(([a], [b]) => a - b)) {
    const { mean, interval } = estimate(values)!;
    const half = interval ?? Number.NaN;
    curve.mean.push({ x, y: mean });
    curve.band.low.push({ x, y: mean - half });
    curve.band.high.push({ x, y: mean + half });
  }
  return curve.band.low.some(({ y }) => Number.isFinite(y)) ? curve : { mean: curve.mean };
}

/**
 * Returns a curve at the middles of `cells` equal parts of [from, to], so that curves whose rows have different
 * positions can be averaged. The value of a part is the mean of its points; a part without points is interpolated.
 * Parts before the first and after the last point have no value.
 */
export function resampled(points: readonly Point[], from: number, to: number, cells: number): Point[] {
  const xs = points.map(({ x }) => x);
  const width = (to - from) / cells;
  const result: Point[] = [];
  for (let cell = 0; cell < cells; cell++) {
    const x = from + (cell + 0.5) * width;
    const [first, end] = [lowerBound(xs, x - width / 2), lowerBound(xs, x + width / 2)];
    const y = end > first ? meanOf(points, first, end) : valueAt(points, x, xs);
    if (Number.isFinite(y)) result.push({ x, y });
  }
  return result;
}

/** Returns the value of a curve at a position, interpolated linearly; NaN before its first and after its last point. */
export function valueAt(
  points: readonly Point[],
  x: number,
  xs: readonly number[] = points.map(each => each.x),
): number {
  const after = lowerBound(xs, x);
  if (after >= points.length) return Number.NaN;
  if (points[after].x === x) return points[after].y;
  if (after === 0) return Number.NaN;
  const [a, b] = [points[after - 1], points[after]];
  return a.y + ((b.y - a.y) * (x - a.x)) / (b.x - a.x);
}

/**
 * Returns at most two points for each of `cells` equal parts of [from, to]: the lowest and the highest, so that every
 * spike is drawn. One point beyond each end is kept, so that a zoomed line reaches the edges.
 */
export function thinnedPoints(points: readonly Point[], from: number, to: number, cells: number): Point[] {
  const xs = points.map(({ x }) => x);
  const first = Math.max(0, lowerBound(xs, from) - 1);
  let end = lowerBound(xs, to);
  while (end < points.length && xs[end] === to) end++;
  const shown = points.slice(first, Math.min(points.length, end + 1));
  if (shown.length <= cells * 2) return shown;
  const kept: Point[] = [];
  for (let at = 0; at < shown.length;) {
    const cell = Math.floor(((shown[at].x - from) / (to - from)) * cells);
    let [low, high] = [at, at];
    for (; at < shown.length && Math.floor(((shown[at].x - from) / (to - from)) * cells) === cell; at++) {
      if (shown[at].y < shown[low].y) low = at;
      if (shown[at].y > shown[high].y) high = at;
    }
    kept.push(shown[Math.min(low, high)]);
    if (low !== high) kept.push(shown[Math.max(low, high)]);
  }
  return kept;
}

function meanOf(points: readonly Point[], from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += points[i].y;
  return sum / (to - from);
}

/**
 * Returns the final value and the highest value of a group. Each of them is a mean with an interval over those seeds
 * that have values.
 */
export function outcomes(curves: readonly RunCurve[]): { final: Estimate | null; best: Estimate | null } {
  const finite = curves.map(({ values }) => values.filter(Number.isFinite)).filter(({ length }) => length > 0);
  return {
    final: estimate(finite.map(values => values[values.length - 1])),
    best: estimate(finite.map(values => values.reduce((high, x) => Math.max(high, x)))),
  };
}
