// Curves of runs that differ in their seeds alone, as one: at each step the mean over the seeds that have a value there, with its 95 %
// interval. And what such runs end at. Pure functions on columns, NaN where a line lacks the key.
import { smooth } from '../../extension/protocol/curves';
import { estimate, type Estimate } from '../../extension/protocol/estimate';
import type { Point } from '../dashboard/curve';

/** A key's values over the steps of a run; both of one length, steps growing. */
export interface RunCurve {
  steps: Float64Array;
  values: Float64Array;
}

export interface GroupCurve {
  mean: Point[];
  /** Where two seeds or more have a value; undefined where that is nowhere. */
  band?: { low: Point[]; high: Point[] };
}

/** The finite points of a run's curve, smoothed. */
export function pointsOf({ steps, values }: RunCurve, smoothing: number): Point[] {
  const points: Point[] = [];
  smooth(values, smoothing).forEach((y, row) => Number.isFinite(y) && points.push({ x: steps[row], y }));
  return points;
}

/** The mean over the seeds' points, which come in growing steps. */
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

/** What a group's runs come to under a key: newest and highest value, each as an estimate over the seeds that have one. */
export function outcomes(curves: readonly RunCurve[]): { final: Estimate | null; best: Estimate | null } {
  const finite = curves.map(({ values }) => values.filter(Number.isFinite)).filter(({ length }) => length > 0);
  return {
    final: estimate(finite.map(values => values[values.length - 1])),
    best: estimate(finite.map(values => values.reduce((high, x) => Math.max(high, x)))),
  };
}
