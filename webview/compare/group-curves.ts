// Aggregates the curves of runs that differ only by seed. For each step, computes the mean over seeds and the 95 %
// interval of this mean (extension/common/mean-estimate.ts). Also computes the group's final and best values. Pure
// functions. NaN marks steps without a value.
import { smooth } from '../../extension/common/smoothing';
import { estimate, type Estimate } from '../../extension/common/mean-estimate';
import type { Point } from '../charts/curve';

/** The values of a key in a run. `steps` increases; both arrays have the same length. */
export interface RunCurve {
  steps: Float64Array;
  values: Float64Array;
}

export interface GroupCurve {
  mean: Point[];
  /** 95 % interval at each step for which at least two seeds have a value; undefined if no step has two values. */
  band?: { low: Point[]; high: Point[] };
}

/** Returns the finite points of a run's curve, smoothed. */
export function pointsOf({ steps, values }: RunCurve, smoothing: number): Point[] {
  const points: Point[] = [];
  smooth(values, smoothing).forEach((y, row) => Number.isFinite(y) && points.push({ x: steps[row], y }));
  return points;
}

/** Returns the mean curve over seeds. The points of each seed are sorted by step. */
export function groupCurve(seeds: readonly (readonly Point[])[]): GroupCurve {
  const byStep = new Map<number, number[]>();
  for (const points of seeds)
    for (const { x, y } of points) {
      const values = byStep.get(x);
      if (values) values.push(y);
      else byStep.set(x, [y]);
    }
  const curve: GroupCurve & Required<Pick<GroupCurve, 'band'>> = { mean: [], band: { low: [], high: [] } };
  for (const [x, values] of [...byStep].sort(([a], [b]) => a - b)) {
    const { mean, interval } = estimate(values)!;
    curve.mean.push({ x, y: mean });
    curve.band.low.push({ x, y: mean - (interval ?? Number.NaN) });
    curve.band.high.push({ x, y: mean + (interval ?? Number.NaN) });
  }
  return curve.band.low.some(({ y }) => Number.isFinite(y)) ? curve : { mean: curve.mean };
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
