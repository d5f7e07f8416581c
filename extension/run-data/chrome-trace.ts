// A timeline as a Chrome trace (JSON Object Format of the Trace Event Format), which Perfetto and chrome://tracing can
// open. The trace has two processes. The threads of the first process show the lanes; the threads of the second process
// show the episodes. The format requires that complete events (`ph: X`) of a thread are nested or disjoint, so a lane
// with overlapping spans has several threads. Times are microseconds since the first exported step. Events are sorted
// by time; metadata events come first.
import { minimum } from '../common/lists';
import { episodeSpans, lanes, type Lane, type StepTimeline } from './timeline';
import { concurrency, disjointRows, nestingRows, requestsOf } from './timeline-measures';

/** Displayed names of the lanes. */
export const laneLabels: Readonly<Record<Lane, string>> = {
  phases: 'Phases',
  sampling: 'Sampling',
  environments: 'Environments',
  scoring: 'Scoring',
  update: 'Update',
  publishing: 'Publishing',
  diagnosis: 'Diagnosis',
  validation: 'Validation',
  checkpoint: 'Checkpoint',
  requests: 'Requests',
  episodes: 'Episodes',
};

/** Lanes whose overlapping spans are independent calls; no span of such a lane is a part of another span. */
const independent: ReadonlySet<Lane> = new Set(['sampling', 'environments', 'requests']);

/** Ids of the trace's processes. */
const processes = { lanes: 1, episodes: 2 } as const;

export interface TraceEvent {
  name: string;
  ph: 'X' | 'C' | 'M' | 's' | 'f';
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  cat?: string;
  /** For flow events only: `id` is the id of the flow, and `bp: 'e'` binds the event to the enclosing span. */
  id?: number;
  bp?: 'e';
  args?: Record<string, string | number>;
}

/** A complete event; its thread (`tid`) is set later. */
type Complete = TraceEvent & { dur: number };

/** Yields the events of steps. `run` is the name of the run. Steps may overlap. */
export function* traceEvents(run: string, steps: readonly StepTimeline[]): Generator<TraceEvent> {
  const origin = minimum(steps.map(({ start }) => start));
  const events: TraceEvent[] = [];
  const threads: TraceEvent[] = [];
  const nameThread = (pid: number, tid: number, name: string): void =>
    void threads.push(
      metadata('thread_name', pid, tid, { name }),
      metadata('thread_sort_index', pid, tid, { sort_index: tid }),
    );
  const byLane = new Map<Lane | 'steps', Complete[]>();
  const tids = new Map<string, number>();
  const tidOf = (id: string): number => {
    const known = tids.get(id);
    if (known !== undefined) return known;
    const tid = tids.size + 1;
    tids.set(id, tid);
    nameThread(processes.episodes, tid, id);
    return tid;
  };
  const requests: { starts: number[]; ends: number[] } = { starts: [], ends: [] };
  for (const timeline of steps) {
    const { spans, names, episodes } = timeline;
    const offset = (timeline.start - origin) * 1000;
    for (let i = 0; i < spans.start.length; i++) {
      const { lane, name } = names[spans.name[i]];
      const [ts, end] = [offset + spans.start[i], offset + spans.start[i] + spans.us[i]].map(Math.round);
      const event = { name, cat: lane, ph: 'X' as const, pid: processes.lanes as number, tid: 0, ts, dur: end - ts };
      const whole = { ...event, args: argsOf(timeline, i) };
      if (lane !== 'episodes') {
        addTo(byLane, lane, whole);
        continue;
      }
      const tid = tidOf(episodes[spans.episode[i]] ?? 'unknown');
      events.push({ ...whole, pid: processes.episodes, tid });
      if (spans.cause[i] < 0) continue;
      const flow = { name: 'waited for', cat: 'wait', id: events.length, pid: processes.episodes, ts: end };
      events.push({ ...flow, ph: 's', tid: tidOf(episodes[spans.cause[i]]) }, { ...flow, ph: 'f', bp: 'e', tid });
    }
    const [ts, end] = [offset, offset + timeline.seconds * 1e6].map(Math.round);
    const { step } = timeline;
    const about = { name: `step ${step}`, cat: 'step', ph: 'X' as const, pid: processes.lanes, tid: 0, args: { step } };
    addTo(byLane, 'steps', { ...about, ts, dur: end - ts });
    for (const [us, value] of timeline.staleness) events.push(counter('staleness', offset + us, value));
    const { starts, ends } = requestsOf(timeline);
    for (const start of starts) requests.starts.push(offset + start);
    for (const end of ends) requests.ends.push(offset + end);
  }
  requests.starts.sort((a, b) => a - b);
  const flight = concurrency(requests);
  flight.at.forEach((us, k) => events.push(counter('requests in flight', us, flight.value[k])));
  for (const [order, lane] of (['steps', ...lanes] as const).entries()) {
    const complete = (byLane.get(lane) ?? []).sort(inOrder);
    const label = lane === 'steps' ? 'Steps' : laneLabels[lane];
    const columns = { start: complete.map(({ ts }) => ts), us: complete.map(({ dur }) => dur) };
    const inRows = lane !== 'steps' && independent.has(lane) ? disjointRows : nestingRows;
    const { rows, count } = inRows(columns, [...complete.keys()]);
    const tidIn = (row: number): number => order * 1000 + row + 1;
    for (let row = 0; row < count; row++)
      nameThread(processes.lanes, tidIn(row), row === 0 ? label : `${label} ${row + 1}`);
    complete.forEach((event, i) => events.push({ ...event, tid: tidIn(rows[i]) }));
  }
  yield metadata('process_name', processes.lanes, 0, { name: run });
  yield metadata('process_sort_index', processes.lanes, 0, { sort_index: 0 });
  yield metadata('process_name', processes.episodes, 0, { name: `${run}: episodes` });
  yield metadata('process_sort_index', processes.episodes, 0, { sort_index: 1 });
  yield* threads;
  yield* events.sort(inOrder);
}

/**
 * Orders events by time. If several events begin at the same time, the longest is first, because it contains the
 * others.
 */
const inOrder = (a: TraceEvent, b: TraceEvent): number => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0);

const counter = (name: string, us: number, value: number): TraceEvent => ({
  ...{ name, ph: 'C', pid: processes.lanes, tid: 0, ts: Math.round(us) },
  args: { value },
});

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Yields the text of the trace in pieces. */
export function* traceText(run: string, steps: readonly StepTimeline[]): Generator<string> {
  yield '{"displayTimeUnit":"ms","traceEvents":[';
  let separator = '\n';
  for (const event of traceEvents(run, steps)) {
    yield separator + JSON.stringify(event);
    separator = ',\n';
  }
  yield '\n]}\n';
}

const metadata = (name: string, pid: number, tid: number, args: Record<string, string | number>): TraceEvent => ({
  ...{ name, ph: 'M', pid, tid, ts: 0, args },
});

function argsOf({ step, episodes, spans, names }: StepTimeline, i: number): Record<string, string | number> {
  const { name } = names[spans.name[i]];
  const waits = name === episodeSpans.batchWait || name === episodeSpans.waveWait;
  return {
    step,
    ...(spans.episode[i] >= 0 && { episode: episodes[spans.episode[i]] }),
    ...(spans.turn[i] > 0 && { turn: spans.turn[i] }),
    ...(waits && spans.cause[i] >= 0 && { waited_for: episodes[spans.cause[i]] }),
    ...(spans.rows[i] > 0 && { rows: spans.rows[i] }),
    ...(spans.tokens[i] > 0 && { tokens: spans.tokens[i] }),
  };
}
