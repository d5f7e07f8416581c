// Finds related spans of a step: all spans of an episode, the span that a waiting span waited for, and the rows that
// one call of the generator sampled. Pure functions of the step's timeline.
import { episodeSpans, type StepTimeline } from '../../extension/run-data/timeline';
import { isWait } from './lane-colours';

/** Returns the indices of all spans of the selected span's episode, in order. */
export function chainOf({ spans }: StepTimeline, selected: number): number[] {
  const episode = spans.episode[selected];
  return Array.from(spans.start.keys()).filter(i => spans.episode[i] === episode);
}

/**
 * Returns the index of the span that span `i` waited for. `cause` contains the episode that span `i` waited for. Of
 * those spans of this episode that began before the waiting ended, returns the span that ended last; -1 if there is
 * none.
 */
export function causeOf({ spans, names }: StepTimeline, i: number): number {
  const end = spans.start[i] + spans.us[i];
  let [found, latest] = [-1, -Infinity];
  for (let k = 0; k < spans.start.length && spans.start[k] <= end; k++) {
    if (spans.episode[k] !== spans.cause[i] || isWait('episodes', names[spans.name[k]].name)) continue;
    const done = spans.start[k] + spans.us[k];
    if (done > latest && spans.start[k] < end) [found, latest] = [k, done];
  }
  return found;
}

/**
 * A call of the generator samples a batch of rows, and each row has a span. Returns the indices of these spans, sorted
 * from the longest to the shortest.
 */
export function rowsOfCall({ spans, names }: StepTimeline, call: number): number[] {
  const [from, to] = [spans.start[call], spans.start[call] + spans.us[call]];
  const isRow = (i: number): boolean => names[spans.name[i]].name === episodeSpans.sampling;
  return Array.from(spans.start.keys())
    .filter(i => Math.abs(spans.start[i] - from) <= 1 && spans.start[i] + spans.us[i] <= to + 1 && isRow(i))
    .sort((a, b) => spans.us[b] - spans.us[a]);
}

/**
 * Returns, for each kind of span, the number of spans, their total time, and the longest span. The kinds are sorted
 * from the largest total time to the smallest.
 */
export function kindTotals({ names, spans }: StepTimeline) {
  const sums = names.map((_, kind) => ({ kind, count: 0, us: 0, longest: -1, at: 0 }));
  for (let i = 0; i < spans.start.length; i++) {
    const sum = sums[spans.name[i]];
    sum.count++;
    sum.us += spans.us[i];
    if (spans.us[i] > sum.longest) Object.assign(sum, { longest: spans.us[i], at: i });
  }
  return sums.filter(({ count }) => count > 0).sort((a, b) => b.us - a.us);
}
