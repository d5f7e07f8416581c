// The overview as bars: one per step, or per range of steps if there are more steps than pixels. The parts of a bar are
// the mean seconds per lane; what no lane claims is empty. Pure functions.
import { lanes, type Lane, type StepSummary } from '../../extension/run-data/timeline';
import type { Range } from './state';

/** Lanes of the bars from bottom to top. `phases` has the phases that no other lane claims. */
export const barLanes: readonly Lane[] = [
  'sampling',
  'environments',
  'scoring',
  'update',
  'publishing',
  'diagnosis',
  'validation',
  'checkpoint',
  'phases',
];

export interface Bar {
  /** Indices of the steps, without `to`. */
  from: number;
  to: number;
  /** Mean seconds of the steps, and of each of `barLanes`. */
  seconds: number;
  parts: readonly number[];
}

/** The bars of the steps in a range: at most `most`. */
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

/** Total seconds of the steps in a range by lane, the largest first; lanes without time are left out. */
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

/** Height of the axis of seconds: the next round number above the longest bar. */
export function roundCeiling(seconds: number): number {
  if (seconds <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(seconds));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(factor => factor * power).find(limit => limit >= seconds * 0.999)!;
}
