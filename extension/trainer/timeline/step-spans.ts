// Collects the spans of one step in memory. To limit the memory, the shortest spans are merged when there are twice
// `limit` spans, and once more when the step ends. Each time, `limit` single spans remain. For the merged spans of each
// name, only their number, their total time and the longest time are kept (`merged`). Times are Unix times in
// milliseconds.
import { noSpans, type Lane, type MergedSpans, type SpanName, type StepTimeline } from '../../run-data/timeline';

/** Maximum number of spans in a step's file. */
export const mostSpans = 100_000;

/** A span that has ended. */
export interface EndedSpan {
  lane: Lane;
  name: string;
  from: number;
  to: number;
  /**
   * `episode`: id of the episode. `turn`: its turn, from 1. `cause`: for a wait, the id of the episode that ended the
   * wait.
   */
  episode?: string;
  turn?: number;
  cause?: string;
  /** Number of rows and tokens of the call. */
  rows?: number;
  tokens?: number;
}

/** A span in progress. */
export type OpenSpan = Omit<EndedSpan, 'to'>;

export class StepSpans {
  private readonly names: SpanName[] = [];
  private readonly nameIndex = new Map<string, number>();
  private readonly episodes: string[] = [];
  private readonly episodeIndex = new Map<string, number>();
  private ended: Row[] = [];
  private readonly open = new Set<OpenSpan>();
  private readonly merged = new Map<number, MergedSpans>();
  private readonly staleness: [at: number, steps: number][] = [];
  /** Number of recorded spans, including merged ones. */
  count = 0;

  constructor(
    readonly step: number,
    private readonly limit = mostSpans,
  ) {}

  /** Begins a span. Returns the object that `end` needs. */
  begin(span: OpenSpan): OpenSpan {
    this.open.add(span);
    return span;
  }

  /** Ends a span at time `to`. `facts` are values that were unknown when the span began. */
  end(span: OpenSpan, to: number, facts: Pick<EndedSpan, 'rows' | 'tokens'> = {}): void {
    if (this.open.delete(span)) this.add({ ...span, ...facts, to });
  }

  add(span: EndedSpan): void {
    this.count++;
    this.ended.push(this.rowOf(span, span.to));
    if (this.ended.length >= 2 * this.limit) this.ended = this.longest(this.ended, this.merged);
  }

  /**
   * Records that from time `at` on, rollouts sample with weights that are `steps` steps older than the newest weights.
   */
  noteStaleness(at: number, steps: number): void {
    if (this.staleness.length < this.limit && this.staleness.at(-1)?.[1] !== steps) this.staleness.push([at, steps]);
  }

  /**
   * Returns the step's timeline at time `now`. If `partial` is true, spans in progress are included as if they ended
   * now; otherwise they are left out.
   */
  timeline(now: number, partial: boolean): StepTimeline {
    const merged = new Map([...this.merged].map(([name, spans]) => [name, { ...spans }]));
    const current = partial ? Array.from(this.open, span => this.rowOf(span, now)) : [];
    const rows = this.longest(this.ended.concat(current), merged);
    const start = rows.reduce((first, { from }) => Math.min(first, from), Infinity);
    const from = Number.isFinite(start) ? start : now;
    rows.sort((a, b) => a.from - b.from || b.to - a.to);
    const spans = noSpans(rows.length);
    rows.forEach((row, i) => {
      spans.start[i] = (row.from - from) * 1000;
      spans.us[i] = (row.to - row.from) * 1000;
      spans.name[i] = row.name;
      spans.episode[i] = row.episode;
      spans.cause[i] = row.cause;
      spans.turn[i] = row.turn;
      spans.rows[i] = row.rows;
      spans.tokens[i] = row.tokens;
    });
    return {
      step: this.step,
      start: from,
      seconds: Math.max(0, now - from) / 1000,
      partial,
      names: [...this.names],
      episodes: [...this.episodes],
      staleness: this.staleness.map(([at, steps]) => [Math.round((at - from) * 1000), steps]),
      limit: this.limit,
      merged: [...merged.values()],
      spans,
    };
  }

  private rowOf(span: OpenSpan, to: number): Row {
    const { lane, name, from, episode, turn = 0, cause, rows = 0, tokens = 0 } = span;
    return {
      name: this.nameOf(lane, name),
      from,
      to: Math.max(from, to),
      episode: this.indexOf(episode),
      cause: this.indexOf(cause),
      turn,
      rows,
      tokens,
    };
  }

  private nameOf(lane: Lane, name: string): number {
    const key = `${lane} ${name}`;
    const known = this.nameIndex.get(key);
    if (known !== undefined) return known;
    this.nameIndex.set(key, this.names.length);
    return this.names.push({ lane, name }) - 1;
  }

  private indexOf(episode: string | undefined): number {
    if (episode === undefined) return -1;
    const known = this.episodeIndex.get(episode);
    if (known !== undefined) return known;
    this.episodeIndex.set(episode, this.episodes.length);
    return this.episodes.push(episode) - 1;
  }

  /** Returns the `limit` longest rows in unchanged order, and adds all other rows to the sums in `merged`. */
  private longest(rows: Row[], merged: Map<number, MergedSpans>): Row[] {
    const excess = rows.length - this.limit;
    if (excess <= 0) return rows;
    const shortestFirst = [...rows.keys()].sort((a, b) => durationOf(rows[a]) - durationOf(rows[b]));
    const dropped = new Set(shortestFirst.slice(0, excess));
    for (const i of dropped) {
      const { name } = rows[i];
      const us = Math.round(durationOf(rows[i]) * 1000);
      const sums = merged.get(name) ?? { name, count: 0, seconds: 0, longest_us: 0 };
      sums.count++;
      sums.seconds += us / 1e6;
      sums.longest_us = Math.max(sums.longest_us, us);
      merged.set(name, sums);
    }
    return rows.filter((_, i) => !dropped.has(i));
  }
}

/** A span with indices instead of names; times in milliseconds. */
interface Row {
  name: number;
  from: number;
  to: number;
  episode: number;
  cause: number;
  turn: number;
  rows: number;
  tokens: number;
}

const durationOf = ({ from, to }: Row): number => to - from;
