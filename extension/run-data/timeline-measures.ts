// Measures of a step's spans: seconds per lane and requests in flight. Also distributes overlapping spans over several
// rows for display. Pure functions on columns.
import { maximum } from '../common/lists';
import { episodeSpans, lanes, type Lane, type StepSummary, type StepTimeline } from './timeline';

/**
 * Lanes by priority. If several lanes are busy at the same time, this time is counted for the first of them. Lanes for
 * which the other lanes wait come first. `validation` precedes `sampling`, so that sampling during a validation is
 * counted as validation. `phases` is last, so it is counted only when no other lane is busy.
 */
const claims: readonly Lane[] = [
  'checkpoint',
  'validation',
  'diagnosis',
  'update',
  'publishing',
  'scoring',
  'sampling',
  'environments',
  'phases',
];

type Spans = Pick<StepTimeline, 'names' | 'spans'>;

/** Returns, for each lane, the seconds during which at least one of its spans was in progress. */
export function busySeconds(step: Spans): Partial<Record<Lane, number>> {
  const found: Partial<Record<Lane, number>> = {};
  for (const [lane, intervals] of intervalsByLane(step)) found[lane] = sum(union(intervals)) / 1e6;
  return found;
}

/**
 * Seconds counted for each lane. Every instant is counted only for the first lane of `claims` that has a span in
 * progress.
 */
export function exposedSeconds(step: Spans): Partial<Record<Lane, number>> {
  const found: Partial<Record<Lane, number>> = {};
  const byLane = intervalsByLane(step);
  let claimed: Interval[] = [];
  let before = 0;
  for (const lane of claims) {
    const intervals = byLane.get(lane);
    if (!intervals) continue;
    claimed = union([...claimed, ...intervals].sort(([a], [b]) => a - b));
    const total = sum(claimed);
    found[lane] = (total - before) / 1e6;
    before = total;
  }
  return found;
}

/** A count that changes over time. From time `at[i]` (microseconds) to `at[i + 1]`, the count is `value[i]`. */
export interface CountSeries {
  at: Float64Array;
  value: Float64Array;
}

/**
 * Requests in flight over time: HTTP requests of a remote engine, or sequences that a local engine samples. The last
 * value is 0.
 */
export const inFlight = (step: Spans): CountSeries => concurrency(requestsOf(step));

/**
 * Returns start and end of each request of a step, in microseconds since the start of the step. The requests are
 * ordered by their start.
 */
export function requestsOf({ names, spans }: Spans): { starts: number[]; ends: number[] } {
  const kinds = names.map(({ lane, name }) => (lane === 'requests' ? 2 : isSampling(lane, name) ? 1 : 0));
  const kind = spans.name.some(name => kinds[name] === 2) ? 2 : 1;
  const found = { starts: [] as number[], ends: [] as number[] };
  for (let i = 0; i < spans.start.length; i++) {
    if (kinds[spans.name[i]] !== kind) continue;
    found.starts.push(spans.start[i]);
    found.ends.push(spans.start[i] + spans.us[i]);
  }
  return found;
}

/** Returns how the number of open intervals changes over time; the last value is 0. `starts` must be ascending. */
export function concurrency({ starts, ends }: { starts: readonly number[]; ends: readonly number[] }): CountSeries {
  const closing = Float64Array.from(ends).sort();
  const at: number[] = [];
  const value: number[] = [];
  for (let s = 0, e = 0; e < closing.length;) {
    const now = s < starts.length ? Math.min(starts[s], closing[e]) : closing[e];
    while (s < starts.length && starts[s] <= now) s++;
    while (e < closing.length && closing[e] <= now) e++;
    if (s - e === (value.at(-1) ?? 0)) continue;
    at.push(now);
    value.push(s - e);
  }
  return { at: Float64Array.from(at), value: Float64Array.from(value) };
}

const isSampling = (lane: Lane, name: string): boolean => lane === 'episodes' && name === episodeSpans.sampling;

/** Returns the maximum of a series, and its mean over `us` microseconds. */
export function peakAndMean({ at, value }: CountSeries, us: number): [peak: number, mean: number] {
  let [peak, area] = [0, 0];
  for (let i = 0; i < at.length; i++) {
    peak = Math.max(peak, value[i]);
    area += value[i] * ((at[i + 1] ?? at[i]) - at[i]);
  }
  return [peak, us > 0 ? area / us : 0];
}

/**
 * Returns a step's line of steps.jsonl. `spans` is the number of spans that were recorded in the step. The first key of
 * the line is `step`, so that a resume can find the lines to remove.
 */
export function summaryOf(timeline: StepTimeline, spans: number): StepSummary {
  const { step, start, seconds, staleness } = timeline;
  const [peak, mean] = peakAndMean(inFlight(timeline), seconds * 1e6);
  return {
    step,
    start: Math.round(start),
    seconds: rounded(seconds),
    exposed: roundedAll(exposedSeconds(timeline)),
    busy: roundedAll(busySeconds(timeline)),
    in_flight: [peak, rounded(mean)],
    staleness: maximum(
      staleness.map(([, steps]) => steps),
      0,
    ),
    spans,
  };
}

const rounded = (value: number): number => Math.round(value * 1e4) / 1e4;

function roundedAll(seconds: Partial<Record<Lane, number>>): Partial<Record<Lane, number>> {
  const found: Partial<Record<Lane, number>> = {};
  for (const lane of lanes) if (seconds[lane] !== undefined) found[lane] = rounded(seconds[lane]);
  return found;
}

/**
 * Assigns spans to rows, so that the spans of a row are disjoint or nested. A span is put into the first row in which
 * it fits. `list` holds the indices of the spans, ordered by the start of the span.
 * @returns the row of each entry of `list`, and the number of rows
 */
export function nestingRows(
  { start, us }: { start: ArrayLike<number>; us: ArrayLike<number> },
  list: readonly number[],
): { rows: number[]; count: number } {
  const open: number[][] = []; // ends of the open spans of each row, outermost first
  const rows = list.map(i => {
    const [from, to] = [start[i], start[i] + us[i]];
    let row = 0;
    for (; row < open.length; row++) {
      const ends = open[row];
      while (ends.length > 0 && ends[ends.length - 1] <= from) ends.pop();
      if (ends.length === 0 || to <= ends[ends.length - 1]) break;
    }
    (open[row] ??= []).push(to);
    return row;
  });
  return { rows, count: open.length };
}

/**
 * Like `nestingRows`, but the spans of a row are always disjoint. Used for lanes whose spans are independent of each
 * other.
 */
export function disjointRows(
  { start, us }: { start: ArrayLike<number>; us: ArrayLike<number> },
  list: readonly number[],
): { rows: number[]; count: number } {
  const ends: number[] = [];
  const rows = list.map(i => {
    const free = ends.findIndex(end => end <= start[i]);
    const row = free < 0 ? ends.length : free;
    ends[row] = start[i] + us[i];
    return row;
  });
  return { rows, count: ends.length };
}

type Interval = [from: number, to: number];

/** Returns, for each lane with at least one span, the lane's spans as intervals, ordered by their start. */
function intervalsByLane({ names, spans: { name, start, us } }: Spans): Map<Lane, Interval[]> {
  const found = new Map<Lane, Interval[]>();
  for (let i = 0; i < start.length; i++) {
    const { lane } = names[name[i]];
    const interval: Interval = [start[i], start[i] + us[i]];
    const intervals = found.get(lane);
    if (intervals) intervals.push(interval);
    else found.set(lane, [interval]);
  }
  return found;
}

/** Merges intervals that overlap or touch. `intervals` must be ordered by their start. */
function union(intervals: readonly Interval[]): Interval[] {
  const found: Interval[] = [];
  for (const [from, to] of intervals) {
    const last = found.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

const sum = (intervals: readonly Interval[]): number => intervals.reduce((total, [from, to]) => total + to - from, 0);
