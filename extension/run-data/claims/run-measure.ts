// Reduces the metrics of one run to one number, as the tests of a claim need it (claim-schema.ts). Means over
// neighbouring values are compared, because single steps are noisy. Pure functions.
import type { StepValue } from '../collapse-path';
import { movingMeans } from '../lasting-falls';
import type { Measure } from './claim-schema';

/** The metrics of one step by key; `step` is the step's number. */
export type StepMetrics = Readonly<Record<string, number>>;

/** A run of a sweep. `steps` are in ascending order. */
export interface MeasuredRun {
  arm: string;
  seed: number;
  steps: readonly StepMetrics[];
}

/** Returns the values of a metric from step `from` on, divided by the metric `over` if it is given. */
export function seriesOf(
  steps: readonly StepMetrics[],
  { metric, over, from }: Pick<Measure, 'metric' | 'over' | 'from'>,
): StepValue[] {
  return steps.flatMap(metrics => {
    const value = over === undefined ? metrics[metric] : metrics[metric] / metrics[over];
    return metrics.step >= from && Number.isFinite(value) ? [{ step: metrics.step, value }] : [];
  });
}

/**
 * Returns the step of the first moving mean that is below a bound and after which no mean is at or above its bound;
 * null if the newest mean is not below its bound. `boundAt` returns the bound of a mean from its index.
 */
export function lastingFall(means: readonly StepValue[], boundAt: (index: number) => number): number | null {
  const over = means.findLastIndex(({ value }, i) => !(value < boundAt(i)));
  return means[over + 1]?.step ?? null;
}

/** Returns the step from which all moving means are below `share` of the best mean so far; null without such a fall. */
export function fallBelowBest(points: readonly StepValue[], share: number, window: number): number | null {
  const means = movingMeans(points, window);
  let best = -Infinity;
  const bests = means.map(({ value }) => (best = Math.max(best, value)));
  return lastingFall(means, i => share * bests[i]);
}

/**
 * Measures a run. Returns null if the run has fewer than `window` values, or, with `lead`, if one of the two metrics
 * does not fall.
 */
export function measureRun({ steps }: MeasuredRun, measure: Measure): number | null {
  const { take, window, share, from, before } = measure;
  const points = seriesOf(steps, measure);
  if (points.length < window) return null;
  const means = movingMeans(points, window).map(({ value }) => value);
  const [first, last] = [means[0], means[means.length - 1]];
  const best = means.reduce((most, value) => Math.max(most, value), -Infinity);
  switch (take) {
    case 'first':
      return first;
    case 'last':
      return last;
    case 'best':
      return best;
    case 'worst':
      return means.reduce((least, value) => Math.min(least, value), Infinity);
    case 'mean':
      return meanValue(points);
    case 'change':
      return last - first;
    case 'gain':
      return best - first;
    case 'kept':
      return best > 0 ? last / best : null;
    case 'until':
      return fallBelowBest(points, share, window) ?? steps[steps.length - 1].step;
    case 'lead': {
      const own = fallBelowBest(points, share, window);
      const other = fallBelowBest(seriesOf(steps, { metric: before!, from }), share, window);
      return own === null || other === null ? null : other - own;
    }
  }
}

const meanValue = (points: readonly StepValue[]): number =>
  points.reduce((sum, { value }) => sum + value, 0) / points.length;
