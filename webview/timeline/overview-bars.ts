// Computes the bars of the overview. Each bar stands for one step or, if there are more steps than pixels, for several
// consecutive steps. The height of each part of a bar is the mean number of seconds that a step spent in one lane. Time
// that belongs to no lane is left blank. Pure functions.
import { lanes, type Lane, type StepSummary } from '../../extension/run-data/timeline';
import type { Range } from './state';

/**
 * Lanes of the bars from bottom to top. The part `phases` is the time in which a phase was in progress and no other
 * lane was busy.
 */
export const barLanes: readonly Lane[] = [
  ...lanes.filter(lane => lane !== 'phases' && lane !== 'requests' && lane !== 'episodes'),
  'phases',
];

export interface Bar {
  /** Indices of the bar's steps; `to` is exclusive. */
  from: number;
  to: number;
  /** Mean seconds per step. `parts` are the mean seconds in each of `barLanes`. */
  seconds: number;
  parts: readonly number[];
}

/** Returns at most `most` bars for the steps in a range. */
export function barsOf(steps: readonly StepSummary[], range: Range, most: number): Bar[] {
  const [first, last] = [Math.max(0, Math.floor(range.from)), Math.min(steps.length, Math.ceil(range.to))];
  const size = Math.max(1, Math.ceil((last - first) / Math.max(1, most)));
  const bars: Bar[] = [];
  for (let from = first; from < last; from += size) {
    const to = Math.min(last, from + size);
    const parts = barLanes.map(() => 0);
    let seconds = 0;
    for (let i = from; i < to; i++) {
      seconds += steps[i].seconds / (to - from);
      barLanes.forEach((lane, k) => (parts[k] += (steps[i].exposed[lane] ?? 0) / (to - from)));
    }
    bars.push({ from, to, seconds, parts });
  }
  return bars;
}

/**
 * Returns, for each lane, the total seconds over the steps in a range, sorted from the largest total to the smallest.
 * Lanes with a total of zero are left out.
 */
export function totals(steps: readonly StepSummary[], range: Range): { lane: Lane; seconds: number }[] {
  const [first, last] = [Math.max(0, Math.floor(range.from)), Math.min(steps.length, Math.ceil(range.to))];
  const sums = new Map<Lane, number>();
  for (let i = first; i < last; i++)
    for (const lane of lanes) sums.set(lane, (sums.get(lane) ?? 0) + (steps[i].exposed[lane] ?? 0));
  return [...sums]
    .map(([lane, seconds]) => ({ lane, seconds }))
    .filter(({ seconds }) => seconds > 0)
    .sort((a, b) => b.seconds - a.seconds);
}

/**
 * Returns the upper end of the y axis, in seconds: the smallest round number that is at least `seconds`. `seconds` is
 * the height of the tallest bar.
 */
export function roundCeiling(seconds: number): number {
  if (seconds <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(seconds));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(factor => factor * power).find(limit => limit >= seconds * 0.999)!;
}
