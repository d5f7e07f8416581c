// The log of a run as entries with a level and a step, from three files: events.jsonl, trainer.log and metrics.jsonl.
// Invariants: every line of events.jsonl and trainer.log that is not blank becomes an entry, whatever it contains, so
// that nothing a trainer wrote is hidden; texts are bounded. Pure functions.
import { isRecord, jsonOrNothing } from '../common/json';
import { formatNumber, formatPercent } from '../common/numbers';
import { placeEvents } from './event-marks';
import { eventSchema, type RunEvent } from './run-events';

/** Levels, most severe first. */
export const logLevels = ['error', 'warning', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogSource = 'event' | 'trainer' | 'step';

export interface LogEntry {
  /** Milliseconds since 1970; null if the line has no time. */
  time: number | null;
  /** Newest step that was finished when the line was written; null if the line does not name one. */
  step: number | null;
  /** The step at which charts mark an event (event-marks.ts), if it is another than `step`; null otherwise. */
  markedAt: number | null;
  level: LogLevel;
  source: LogSource;
  /** Kind of an event, such as `alarm`; `log` or `output` for a line of trainer.log; `step` for a finished step. */
  kind: string;
  text: string;
  /** The line in its file, cut after `mostRaw` characters. */
  raw: string;
}

/** Maximum characters of `raw` and `text`. */
const mostRaw = 16_384;
const mostText = 2000;

const levelsOfEvents: Partial<Record<RunEvent['kind'], LogLevel>> = {
  environment_error: 'error',
  environment_refused: 'error',
  plugin_error: 'error',
  plugin_refused: 'error',
  alarm: 'warning',
  early_stop: 'warning',
  warning: 'warning',
  environment_version: 'warning',
  plugin_version: 'warning',
  memory_plan: 'debug',
  longest_batch: 'debug',
  plugin_charts: 'debug',
};

const entry = (line: string, about: Omit<LogEntry, 'raw' | 'markedAt'>): LogEntry => ({
  ...about,
  markedAt: null,
  text: about.text.slice(0, mostText),
  raw: line.slice(0, mostRaw),
});

/** A line of events.jsonl as an entry, and its event; null if the line is not an event. */
export interface EventLine {
  entry: LogEntry;
  event: RunEvent | null;
}

/** Parses a line of events.jsonl. A line that is not an event becomes an error entry. */
export function eventLine(line: string): EventLine {
  const parsed = eventSchema.safeParse(jsonOrNothing(line));
  if (!parsed.success) {
    const about = { time: null, step: null, level: 'error', source: 'event', kind: 'unreadable' } as const;
    return {
      entry: entry(line, { ...about, text: `This line of events.jsonl is not an event: ${line}` }),
      event: null,
    };
  }
  const { time, step, kind, message } = parsed.data;
  const failed = kind === 'state' && message.startsWith('failed');
  return {
    entry: entry(line, {
      ...{ time: timeOf(time), step, source: 'event', kind, text: message },
      level: failed ? 'error' : (levelsOfEvents[kind] ?? 'info'),
    }),
    event: parsed.data,
  };
}

/** Returns the entries of the lines of events.jsonl in their order, each with the step at which charts mark it. */
export function markedEntries(lines: readonly EventLine[]): LogEntry[] {
  const placed = placeEvents(lines.flatMap(({ event }) => event ?? [])).values();
  return lines.map(({ entry, event }) => {
    const step = event ? placed.next().value?.step : undefined;
    return { ...entry, markedAt: step === undefined || step === entry.step ? null : step };
  });
}

/** Parses a line of trainer.log: a JSON line of the trainer's logger, or the output of an environment or a library. */
export function trainerEntry(line: string): LogEntry {
  const value = jsonOrNothing(line);
  if (!isRecord(value) || typeof value.level !== 'number')
    return entry(line, { time: null, step: null, level: 'info', source: 'trainer', kind: 'output', text: line });
  const { err } = value;
  const texts = [value.msg, isRecord(err) ? err.message : undefined].filter(text => typeof text === 'string');
  return entry(line, {
    time: timeOf(value.time),
    step: typeof value.step === 'number' ? value.step : null,
    level: value.level >= 50 ? 'error' : value.level >= 40 ? 'warning' : value.level >= 30 ? 'info' : 'debug',
    source: 'trainer',
    kind: 'log',
    text: [...new Set(texts)].join(': ') || line,
  });
}

/** Parses a line of metrics.jsonl as one sentence about the finished step; null if it is not a metrics line. */
export function stepEntry(line: string): LogEntry | null {
  const value = jsonOrNothing(line);
  if (!isRecord(value) || typeof value.step !== 'number') return null;
  const numbers = Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === 'number');
  const mean = (pattern: RegExp): number | undefined => {
    const found = numbers.filter(([key]) => pattern.test(key)).map(([, number]) => number);
    return found.length === 0 ? undefined : found.reduce((sum, x) => sum + x, 0) / found.length;
  };
  const [train, validation] = [mean(/^train\/[^/]+\/success$/), mean(/^val-env\/[^/]+\/success$/)];
  const [score, seconds] = [mean(/^critic\/score\/mean$/), mean(/^timing_s\/step$/)];
  const facts = [
    train !== undefined && `success ${formatPercent(train)}`,
    score !== undefined && `mean score ${formatNumber(score)}`,
    validation !== undefined && `validation ${formatPercent(validation)}`,
    seconds !== undefined && `${formatNumber(seconds)} s`,
  ].filter(Boolean);
  return entry(line, {
    ...{ time: timeOf(value.time), step: value.step, level: 'info', source: 'step', kind: 'step' },
    text: ['finished', ...facts].join(' · '),
  });
}

/**
 * Merges entries of several files by time. The entries of one file keep their order; an entry without a time follows
 * the entry before it in its file. An entry without a step gets the step of the merged entry before it.
 */
export function mergeEntries(files: readonly (readonly LogEntry[])[], before: LogEntry | null = null): LogEntry[] {
  const timed = files.flatMap((entries, file) => {
    let time = before?.time ?? 0;
    return entries.map((each, at) => ({ each, file, at, time: (time = Math.max(time, each.time ?? time)) }));
  });
  timed.sort((a, b) => a.time - b.time || a.file - b.file || a.at - b.at);
  let step = before?.step ?? null;
  return timed.map(({ each }) => ({ ...each, step: (step = each.step ?? step) }));
}

/** Returns the milliseconds since 1970 of an ISO time or a number; null for anything else. */
function timeOf(time: unknown): number | null {
  const ms = typeof time === 'number' ? time : typeof time === 'string' ? Date.parse(time) : NaN;
  return Number.isFinite(ms) ? ms : null;
}
