// Successive halving (Jamieson and Talwalkar 2016) over the points of a sweep: all runs train up to a rung, the points
// are ranked by the mean of a metric over the seeds, and only the best part continues to the next rung. A decision
// depends only on values at steps up to its rung, never on timing, so a repeated or continued sweep decides the same.
import { meanOf } from '../../common/paired-statistics';
import type { Halving, PointStop } from '../../run-data/sweep-file';

/** One run of a point, as far as the decisions need it. */
export interface HalvedRun {
  seed: number;
  /** Number of finished steps. */
  steps: number;
  /** Whether the run trains no further in this sweep: it is finished, or it has failed for good. */
  isOver: boolean;
  /** Returns the newest value of the metric up to a step; null without a value. */
  valueAt(step: number): number | null;
}

export interface HalvingState {
  /** Step up to which the remaining points train now; Infinity for their end. */
  target: number;
  /** The points that were stopped, by index. */
  stopped: Map<number, PointStop>;
}

/**
 * Decides which points are stopped. `points` has the runs of each point. Rungs are decided in order; the first rung that
 * a run of a remaining point has yet to reach is the target.
 */
export function halve(points: readonly (readonly HalvedRun[])[], rule: Halving): HalvingState {
  const stopped = new Map<number, PointStop>();
  let remaining = [...points.keys()];
  for (const rung of rule.rungs) {
    if (remaining.length <= rule.least_points) break;
    if (remaining.some(p => points[p].some(run => !run.isOver && run.steps < rung))) return { target: rung, stopped };
    const values = valuesAt(rung, remaining, points);
    if (values.every(value => value === null)) continue; // nothing to rank by
    const cost = (value: number | null): number => (value === null ? Infinity : rule.goal === 'min' ? value : -value);
    const order = [...remaining.keys()].sort((i, j) => cost(values[i]) - cost(values[j]) || i - j);
    const kept = Math.max(rule.least_points, Math.ceil(remaining.length / rule.factor));
    order.forEach((i, rank) => {
      if (rank < kept) return;
      stopped.set(remaining[i], { step: rung, value: values[i], rank: rank + 1, of: remaining.length });
    });
    remaining = remaining.filter(p => !stopped.has(p));
  }
  return { target: Infinity, stopped };
}

/**
 * Returns the mean value of each remaining point over the seeds of which every point with values has one, so that the
 * comparison is paired; over each point's own seeds if they share none.
 */
function valuesAt(
  rung: number,
  remaining: readonly number[],
  points: readonly (readonly HalvedRun[])[],
): (number | null)[] {
  const bySeed = remaining.map(
    p =>
      new Map(
        points[p].flatMap(run => {
          const value = run.valueAt(rung);
          return value === null ? [] : [[run.seed, value] as const];
        }),
      ),
  );
  const valued = bySeed.filter(({ size }) => size > 0);
  const shared = [...(valued.at(0)?.keys() ?? [])].filter(seed => valued.every(values => values.has(seed)));
  return bySeed.map(values => {
    const chosen = shared.length > 0 ? shared.flatMap(seed => values.get(seed) ?? []) : [...values.values()];
    return chosen.length === 0 ? null : meanOf(chosen);
  });
}

/** Returns the rungs `first`, `first × factor`, … below the number of steps of the runs. */
export function rungsBelow(steps: number, first: number, factor: number): number[] {
  const rungs: number[] = [];
  for (let rung = first; rung < steps; rung *= factor) rungs.push(Math.round(rung));
  return rungs;
}
