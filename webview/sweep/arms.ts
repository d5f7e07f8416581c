// The results of a sweep, computed from its snapshot: the arms with their cells, the estimate of each arm and how its
// interval narrowed, and the paired difference of two arms. Pure functions.
import { estimate, intervalSeeds, type Estimate } from '../../extension/common/mean-estimate';
import { pairedDifference, type PairedDifference } from '../../extension/common/paired-statistics';
import type { SweepCell, SweepSnapshot } from '../../extension/protocol/sweep-page';
import type { SweepSettings } from './state';

export interface Arm {
  readonly label: string;
  readonly stopped: SweepSnapshot['points'][number]['stopped'];
  /** Cells in the order of `seedsOf`; undefined where the arm has no such seed. */
  readonly cells: readonly (SweepCell | undefined)[];
  /** The values that count, by seed. */
  readonly values: ReadonlyMap<number, number>;
  /** Null without values. */
  readonly estimate: Estimate | null;
  /** Estimates over the first 3, 4, … values in the order in which the runs ended. */
  readonly history: readonly Estimate[];
}

export interface ArmDifference {
  readonly base: Arm;
  readonly other: Arm;
  readonly pairs: readonly { readonly seed: number; readonly base: number; readonly other: number }[];
  /** Other minus base; null without pairs. */
  readonly paired: PairedDifference | null;
}

/** Seed of the bootstrap of the differences, the same as in the terminal's table. */
const bootstrapSeed = 1;

/** Returns the seeds of the sweep, in the order of their first cells. */
export const seedsOf = ({ cells }: SweepSnapshot): number[] => [...new Set(cells.map(({ seed }) => seed))];

/** Returns the arms of the sweep, in the order of the sweep's file. */
export function armsOf(snapshot: SweepSnapshot, at: SweepSettings['at'], unfinished: boolean): Arm[] {
  const seeds = seedsOf(snapshot);
  return snapshot.points.map(({ label, stopped }, p) => {
    const own = snapshot.cells.filter(({ point }) => point === p);
    const counted = own.filter(cell => cell[at] !== null && (unfinished || isFinished(cell)));
    const inOrder = [...counted].sort(byEnd);
    const values = inOrder.map(cell => cell[at]!);
    const history = values.slice(intervalSeeds - 1).map((_, i) => estimate(values.slice(0, i + intervalSeeds))!);
    return {
      label,
      stopped,
      cells: seeds.map(seed => own.find(cell => cell.seed === seed)),
      values: new Map(counted.map(cell => [cell.seed, cell[at]!])),
      estimate: estimate(values),
      history,
    };
  });
}

const isFinished = ({ run }: SweepCell): boolean => run?.status.state === 'finished';

/** Orders cells by the end of their runs; unfinished runs are last. */
function byEnd(a: SweepCell, b: SweepCell): number {
  const [x, y] = [a, b].map(cell => (isFinished(cell) ? cell.run!.status.updated : '~'));
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * Returns the difference between two arms. An arm that is not named is chosen: the first arm as base, and as other the
 * arm with the best mean apart from it. Null for a sweep of one arm.
 */
export function differenceOf(
  arms: readonly Arm[],
  names: Pick<SweepSettings, 'base' | 'other'>,
  isLowerBetter: boolean,
): ArmDifference | null {
  if (arms.length < 2) return null;
  const base = arms.find(({ label }) => label === names.base) ?? arms.find(({ label }) => label !== names.other)!;
  const rest = arms.filter(arm => arm !== base);
  const score = ({ estimate: found }: Arm): number =>
    found === null ? -Infinity : isLowerBetter ? -found.mean : found.mean;
  const best = rest.reduce((top, arm) => (score(arm) > score(top) ? arm : top));
  const other = rest.find(({ label }) => label === names.other) ?? best;
  const pairs = [...base.values].flatMap(([seed, value]) => {
    const paired = other.values.get(seed);
    return paired === undefined ? [] : [{ seed, base: value, other: paired }];
  });
  const paired = pairedDifference(
    pairs.map(pair => pair.base),
    pairs.map(pair => pair.other),
    { seed: bootstrapSeed },
  );
  return { base, other, pairs, paired };
}

/** Returns the range of all values and intervals of the arms; null without values. Shares are limited to 0…1. */
export function domainOf(arms: readonly Arm[], isShare: boolean): { low: number; high: number } | null {
  const ends = arms.flatMap(({ values, history }) => [
    ...values.values(),
    ...history.flatMap(({ mean, interval }) => (interval === null ? [] : [mean - interval, mean + interval])),
  ]);
  if (ends.length === 0) return null;
  const low = ends.reduce((least, value) => Math.min(least, value));
  const high = ends.reduce((most, value) => Math.max(most, value));
  return isShare ? { low: Math.max(0, low), high: Math.min(1, high) } : { low, high };
}
