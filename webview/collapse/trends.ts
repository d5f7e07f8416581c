// Trends in a series of a run: whether it has fallen for good, since when, and from what. All comparisons are between
// means over neighbouring values, since single steps are noisy; the shares come from the runs in test/experiments.
import type { PathPoint, StepValue } from './run-series';

/** A fall for good is one under this share of the best, on means over three (test/experiments). */
export const fallen = 0.85;

/** When something fell: the first step that shows it, and the last one before it. */
export interface Onset {
  fine: number;
  began: number;
}

/** A fall for good. */
export interface Fall {
  /** Best mean over three values before the fall, and the newest mean. */
  from: StepValue;
  now: number;
  since: number;
  onset: Onset;
}

/** The fall of a family's mutual information; null if it has not fallen. */
export const informationFall = (path: readonly PathPoint[]): Fall | null =>
  fallOf(path.map(({ step, information }) => ({ step, value: information.value })));

/** Means over `window` neighbouring values, each at the last one's step. */
const smoothed = (points: readonly StepValue[], window: number): StepValue[] =>
  points.slice(window - 1).map(({ step }, i) => ({ step, value: mean(points.slice(i, i + window)) }));

/**
 * The last stretch over which means of three stay under `fallen` of the best before; null where the newest is not in
 * one.
 */
export function fallOf(points: readonly StepValue[]): Fall | null {
  const means = smoothed(points, 3);
  if (means.length < 4) return null;
  let best = means[0];
  let since: number | null = null;
  let from = best;
  means.forEach((point, i) => {
    if (point.value > best.value) best = point;
    if (best.value > 0 && point.value < fallen * best.value) {
      since ??= i;
      from = best;
    } else since = null;
  });
  if (since === null) return null;
  const now = means[means.length - 1].value;
  return { from, now, since: means[since].step, onset: onsetOf(points, since, fallen * from.value) };
}

/** Since when means of ten stay under a share of the first ten's; null where they do not, or there are too few. */
export function fallUnderFirst(
  points: readonly StepValue[],
  part: number,
): { first: number; now: number; since: number; onset: Onset } | null {
  const means = smoothed(points, 10);
  if (means.length < 2 || !(means[0].value > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < part * means[0].value));
  const since = means[over + 1];
  if (!since) return null;
  const [{ value: first }, { value: now }] = [means[0], means[means.length - 1]];
  return { first, now, since: since.step, onset: onsetOf(points, over + 1, part * first) };
}

/**
 * A mean stands at its last value's step: of the values from `first` on that it is made of, the first under the bound.
 */
function onsetOf(points: readonly StepValue[], first: number, bound: number): Onset {
  const at = points.findIndex(({ value }, i) => i >= first && value < bound);
  const began = at < 0 ? first : at;
  return { fine: points[Math.max(0, began - 1)].step, began: points[began].step };
}

/** Since when H(Z|X), as means of three, stays under half of where it began. */
export function narrowing(path: readonly PathPoint[]): { since: number; from: number } | null {
  const means = smoothed(
    path.map(({ step, entropy }) => ({ step, value: entropy.value })),
    3,
  );
  const from = path[0].entropy.value;
  if (means.length === 0 || !(from > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < from / 2));
  const since = means[over + 1];
  return since ? { since: since.step, from } : null;
}

const mean = (points: readonly StepValue[]): number =>
  points.reduce((sum, { value }) => sum + value, 0) / points.length;

/** Mean of the last values; NaN of none. */
export const tail = (points: readonly StepValue[], count: number): number => mean(points.slice(-count));
