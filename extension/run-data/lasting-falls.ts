// Detects lasting falls in a series of a run. A fall is returned with its first step and the value before the fall.
// Means over neighbouring values are compared, because single steps are noisy. The thresholds come from the runs in
// test/experiments.
import type { PathPoint, StepValue } from './collapse-path';

/**
 * A fall begins when the mean over three values is below this share of the best earlier mean over three values. The
 * number comes from test/experiments.
 */
export const fallen = 0.85;

/**
 * The onset of a fall. `began` is the step of the first value that is low enough to be part of the fall. `fine` is the
 * step before `began`.
 */
export interface Onset {
  fine: number;
  began: number;
}

/** A lasting fall. */
export interface Fall {
  /**
   * Best mean over three values before the fall. `now` is the newest mean. `since` is the step since which all means
   * have been below `fallen` times the best mean.
   */
  from: StepValue;
  now: number;
  since: number;
  onset: Onset;
}

/** Returns the fall of a family's mutual information; null if the mutual information has not fallen. */
export const informationFall = (path: readonly PathPoint[]): Fall | null =>
  fallOf(path.map(({ step, information }) => ({ step, value: information.value })));

/** Returns the means over `window` neighbouring values; the step of a mean is the step of its last value. */
export const movingMeans = (points: readonly StepValue[], window: number): StepValue[] =>
  points.slice(window - 1).map(({ step }, i) => ({ step, value: mean(points.slice(i, i + window)) }));

/**
 * Returns the lasting fall of a series. Returns null if the newest mean over three values is at least `fallen` times
 * the best mean.
 */
export function fallOf(points: readonly StepValue[]): Fall | null {
  const means = movingMeans(points, 3);
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

/**
 * Returns the lasting fall of a series' moving mean over ten values. The mean has fallen if it is below `part` times
 * the first mean. Returns null if the newest mean has not fallen, or if there are fewer than 11 values.
 */
export function fallUnderFirst(
  points: readonly StepValue[],
  part: number,
): { first: number; now: number; since: number; onset: Onset } | null {
  const means = movingMeans(points, 10);
  if (means.length < 2 || !(means[0].value > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < part * means[0].value));
  const since = means[over + 1];
  if (!since) return null;
  const [{ value: first }, { value: now }] = [means[0], means[means.length - 1]];
  return { first, now, since: since.step, onset: onsetOf(points, over + 1, part * first) };
}

/**
 * Returns the onset of a fall: the first value below `bound` at or after index `first`. `first` is the index of the
 * first value that contributes to the first mean below `bound`.
 */
function onsetOf(points: readonly StepValue[], first: number, bound: number): Onset {
  const at = points.findIndex(({ value }, i) => i >= first && value < bound);
  const began = at < 0 ? first : at;
  return { fine: points[Math.max(0, began - 1)].step, began: points[began].step };
}

/**
 * The fall of H(Z|X) to less than half of `from`, its value at the first diagnosis. `since` is the step since which all
 * means over three values have been smaller than half of `from`.
 */
export interface Narrowing {
  from: StepValue;
  since: number;
}

/** Returns the narrowing of H(Z|X); null if the newest mean over three values is at least half of the first value. */
export function narrowing(path: readonly PathPoint[]): Narrowing | null {
  const means = movingMeans(
    path.map(({ step, entropy }) => ({ step, value: entropy.value })),
    3,
  );
  const from = { step: path[0].step, value: path[0].entropy.value };
  if (means.length === 0 || !(from.value > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < from.value / 2));
  const since = means[over + 1];
  return since ? { since: since.step, from } : null;
}

const mean = (points: readonly StepValue[]): number =>
  points.reduce((sum, { value }) => sum + value, 0) / points.length;

/** Returns the mean of the last `count` values; NaN for an empty series. */
export const tail = (points: readonly StepValue[], count: number): number => mean(points.slice(-count));
