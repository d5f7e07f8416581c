// Relations between the spans of a step: what an episode did, what a span waited for, and the rows of a call. Pure
// functions of the step's timeline.
import { episodeSpans, type StepTimeline } from '../../extension/run-data/timeline';
import { isWait } from './lane-colours';

/** Everything that the episode of a span did, in order. */
export function chainOf({ spans }: StepTimeline, selected: number): number[] {
  const episode = spans.episode[selected];
  return Array.from(spans.start.keys()).filter(i => spans.episode[i] === episode);
}

/** The span for which span `i` waited: the last that its `cause` ended before the waiting was over; -1 for none. */
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

/** The sampled rows of a call of the generator, the longest first. */
export function rowsOfCall({ spans, names }: StepTimeline, call: number): number[] {
  const [from, to] = [spans.start[call], spans.start[call] + spans.us[call]];
  const isRow = (i: number): boolean => names[spans.name[i]].name === episodeSpans.sampling;
  return Array.from(spans.start.keys())
    .filter(i => Math.abs(spans.start[i] - from) <= 1 && spans.start[i] + spans.us[i] <= to + 1 && isRow(i))
    .sort((a, b) => spans.us[b] - spans.us[a]);
}

/** Count and times of each kind of span, the largest total first. */
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
