// The timeline of a run records the trainer's work over time. `timeline/steps.jsonl` has one line per step: seconds per
// lane and counts. `timeline/step-000012.jsonl` has the individual spans of a step: first a header line, then lines
// with the spans as columns, ordered by their start. Times are wall-clock, so they differ between equal runs; no
// checksum covers these files, and a resume does not compare them. Spans of a lane may overlap, because several
// requests, environment calls or training steps may run at the same time.
import { z } from 'zod';

/**
 * The lanes, from top to bottom. `phases` are the phases that the metrics `timing_s/*` measure. `requests` are HTTP
 * requests to a server. `episodes` shows for each episode what it did or waited for.
 */
export const lanes = [
  'phases',
  'sampling',
  'environments',
  'scoring',
  'update',
  'publishing',
  'diagnosis',
  'validation',
  'checkpoint',
  'requests',
  'episodes',
] as const;

export type Lane = (typeof lanes)[number];

/** Names of an episode's spans. The `cause` of a waiting span is the episode for which the span's episode waited. */
export const episodeSpans = {
  reset: 'reset',
  prompt: 'prompt',
  sampling: 'sampling',
  environment: 'environment',
  batchWait: 'wait for the batch',
  waveWait: 'wait for the wave',
} as const;

/** A kind of span: the name of the work, and the lane in which its spans are shown. */
export interface SpanName {
  lane: Lane;
  name: string;
}

/** The spans of a step by column, in order of their start. */
export interface SpanColumns {
  /** Index into the step's `names`. */
  name: Uint16Array;
  /** Microseconds since the step's start; negative for a span that began before the step. */
  start: Float64Array;
  /** Duration in microseconds. */
  us: Float64Array;
  /**
   * Indices into the step's `episodes`; -1 for none. `episode` is the episode of the span; `cause` is the episode for
   * which that episode waited.
   */
  episode: Int32Array;
  cause: Int32Array;
  /** Turn of the episode, from 1; 0 for none. */
  turn: Int32Array;
  /**
   * `rows` is the number of samples, episodes or pairs that the call of the span processes; `tokens` is the number of
   * their tokens. A number that does not apply to the call is 0.
   */
  rows: Int32Array;
  tokens: Int32Array;
}

/** Totals over those spans of one name that were left out of the file because they were the shortest. */
export interface MergedSpans {
  name: number;
  count: number;
  seconds: number;
  longest_us: number;
}

/** The spans of one step. */
export interface StepTimeline {
  step: number;
  /** Unix time in milliseconds at which the step began. */
  start: number;
  seconds: number;
  /**
   * True if the file was written while the step was running. A span that was still in progress ends at the time of
   * writing.
   */
  partial: boolean;
  names: SpanName[];
  /** Ids of the episodes. */
  episodes: string[];
  /**
   * Changes of the staleness of the sampled weights. Each pair contains a time in microseconds since the step's start,
   * and the staleness in steps from this time on.
   */
  staleness: [us: number, steps: number][];
  /**
   * Maximum number of spans in the file. If a step has more spans, the shortest spans are left out and are counted only
   * in `merged`.
   */
  limit: number;
  merged: MergedSpans[];
  spans: SpanColumns;
}

const headerSchema = z.object({
  schema: z.literal(1),
  step: z.int().min(0),
  start: z.number(),
  seconds: z.number().min(0),
  partial: z.boolean(),
  names: z.array(z.tuple([z.enum(lanes), z.string()])),
  episodes: z.array(z.string()),
  staleness: z.array(z.tuple([z.number(), z.number()])),
  limit: z.int().min(1),
  merged: z.array(
    z.object({ name: z.int().min(0), count: z.int().min(1), seconds: z.number(), longest_us: z.number() }),
  ),
  spans: z.int().min(0),
});

/**
 * Columns of a line. `start` contains the start of the line's first span, and for each further span the difference from
 * the previous start. A column is left out if all its values equal the column's entry in `absent`.
 */
const columnsSchema = z.object({
  name: z.array(z.int().min(0)),
  start: z.array(z.number()),
  us: z.array(z.number().min(0)),
  episode: z.array(z.int().min(-1)).optional(),
  cause: z.array(z.int().min(-1)).optional(),
  turn: z.array(z.int().min(0)).optional(),
  rows: z.array(z.int().min(0)).optional(),
  tokens: z.array(z.int().min(0)).optional(),
});

/**
 * Columns that a line leaves out if no span of the line has a value there. The number given for a column means "no
 * value" in this column.
 */
const absent = { episode: -1, cause: -1, turn: 0, rows: 0, tokens: 0 } as const;
const optionalColumns = Object.keys(absent) as (keyof typeof absent)[];

/** Spans per line of a step's file. */
const lineSpans = 8192;

export const noSpans = (count = 0): SpanColumns => ({
  name: new Uint16Array(count),
  start: new Float64Array(count),
  us: new Float64Array(count),
  episode: new Int32Array(count).fill(-1),
  cause: new Int32Array(count).fill(-1),
  turn: new Int32Array(count),
  rows: new Int32Array(count),
  tokens: new Int32Array(count),
});

/** Yields the lines of a step's file, each with its newline. */
export function* encodeStep({ names, spans, ...rest }: StepTimeline): Generator<string> {
  const count = spans.start.length;
  const header = { schema: 1, ...rest, names: names.map(({ lane, name }) => [lane, name]), spans: count };
  yield `${JSON.stringify(header)}\n`;
  for (let from = 0; from < count; from += lineSpans) {
    const to = Math.min(count, from + lineSpans);
    const line: Record<string, number[]> = { name: Array.from(spans.name.subarray(from, to)), start: [], us: [] };
    let before = 0;
    for (let i = from; i < to; i++) {
      const at = Math.round(spans.start[i]);
      line.start.push(at - before);
      line.us.push(Math.round(spans.us[i]));
      before = at;
    }
    for (const column of optionalColumns) {
      const values = spans[column].subarray(from, to);
      if (values.some(value => value !== absent[column])) line[column] = Array.from(values);
    }
    yield `${JSON.stringify(line)}\n`;
  }
}

/**
 * Reads a step's file from its lines. If a crash has truncated the file, the result contains the spans of the complete
 * lines.
 * @throws Error that describes the damage
 */
export function decodeStep(lines: readonly string[]): StepTimeline {
  const [first, ...rest] = lines.filter(line => line !== '');
  const { schema: _, names, spans: count, ...header } = headerSchema.parse(JSON.parse(first ?? 'null'));
  const spans = noSpans(count);
  let at = 0;
  for (const text of rest) {
    const line = columnsSchema.parse(JSON.parse(text));
    const length = line.start.length;
    if (at + length > count) throw new Error(`the file has more than the ${count} spans that its first line names`);
    let before = 0;
    for (let i = 0; i < length; i++) spans.start[at + i] = before += line.start[i];
    for (const column of ['name', 'us', ...optionalColumns] as const) {
      const values = line[column];
      if (values === undefined) continue;
      if (values.length !== length)
        throw new Error(`column ${column} has ${values.length} values, but start has ${length}`);
      spans[column].set(values, at);
    }
    at += length;
  }
  const isKnown = (index: number, of: number): boolean => index < of;
  for (let i = 0; i < at; i++)
    if (
      !isKnown(spans.name[i], names.length) ||
      !isKnown(spans.episode[i], header.episodes.length) ||
      !isKnown(spans.cause[i], header.episodes.length)
    )
      throw new Error(`span ${i} names a kind or an episode that the first line lacks`);
  return {
    ...header,
    names: names.map(([lane, name]) => ({ lane, name })),
    spans: at < count ? cut(spans, at) : spans,
  };
}

function cut(spans: SpanColumns, to: number): SpanColumns {
  const { name, start, us, episode, cause, turn, rows, tokens } = spans;
  return {
    ...{ name: name.slice(0, to), start: start.slice(0, to), us: us.slice(0, to), episode: episode.slice(0, to) },
    ...{ cause: cause.slice(0, to), turn: turn.slice(0, to), rows: rows.slice(0, to), tokens: tokens.slice(0, to) },
  };
}

const laneSeconds = z.partialRecord(z.enum(lanes), z.number());

/** A line of `timeline/steps.jsonl`. */
export const stepSummarySchema = z.object({
  step: z.int().min(0),
  /** `start` is the Unix time in milliseconds at which the step began; `seconds` is the duration of the step. */
  start: z.number(),
  seconds: z.number().min(0),
  /**
   * Seconds of the step by lane. Each instant is counted for only one lane (`exposedSeconds`), so the sum is at most
   * `seconds`.
   */
  exposed: laneSeconds,
  /** For each lane, the seconds during which at least one of its spans was in progress. */
  busy: laneSeconds,
  /** Maximum and mean number of requests in flight. */
  in_flight: z.tuple([z.number(), z.number()]),
  /** Maximum staleness of the sampled weights, in steps. */
  staleness: z.number(),
  /** Number of recorded spans. */
  spans: z.int().min(0),
});
export type StepSummary = z.infer<typeof stepSummarySchema>;
