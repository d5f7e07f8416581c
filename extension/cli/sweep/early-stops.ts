// Reads what successive halving (halving.ts) needs from the run folders of a sweep: the steps that each run has
// finished, and the values of the compared metric.
import { UserError } from '../../common/user-error';
import type { MetricsLine } from '../../run-data/step-lines';
import { validationSuccess } from '../../trainer/loop/metric-statistics';
import type { RunFolder } from '../../trainer/store/run-folder';
import { metricLines } from '../run-lifecycle/follow';
import { numbersOf } from '../output/run-summary';
import { halve, type HalvedRun, type HalvingState } from './halving';
import type { SweepPlan } from './sweep-plan';

/** Decides which points are stopped now. `gaveUp` has the runs that are not tried again, by index in `plan.members`. */
export function earlyStops(
  { points, members, halving }: SweepPlan,
  runs: ReadonlyMap<number, RunFolder>,
  gaveUp: ReadonlySet<number>,
): HalvingState {
  if (!halving) return { target: Infinity, stopped: new Map() };
  const halved = members.map((member, m) => halvedRun(runs.get(m), member.seed, gaveUp.has(m), halving.metric));
  return halve(
    points.map((_, p) => halved.filter((_run, m) => members[m].point === p)),
    halving,
  );
}

function halvedRun(folder: RunFolder | undefined, seed: number, gaveUp: boolean, metric: string | null): HalvedRun {
  const nothing = { seed, steps: 0, isOver: gaveUp, valueAt: () => null };
  if (!folder) return nothing;
  try {
    const status = folder.readStatus();
    const values = [...metricLines(folder)].flatMap(line => {
      const value = valueIn(line, metric);
      return value === null ? [] : [{ step: line.step, value }];
    });
    return {
      ...{ seed, steps: status?.step ?? 0, isOver: gaveUp || status?.state === 'finished' },
      valueAt: step => values.findLast(at => at.step <= step)?.value ?? null,
    };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...nothing, isOver: true }; // `outcomeOf` reports the damaged run
  }
}

function valueIn(line: MetricsLine, metric: string | null): number | null {
  const numbers = numbersOf(line);
  return metric === null ? validationSuccess(numbers) : (numbers[metric] ?? null);
}
