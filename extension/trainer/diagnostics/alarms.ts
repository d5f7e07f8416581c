// The watch for Echo Traps (RAGEN, §3): rewards within a prompt group come to be all alike, thoughts repeat, gradients
// spike and entropy runs off, before success falls. Each alarm is one of run-data/alarm-rules.ts that holds for the
// newest steps, and states its evidence. Pure functions; what they remember is plain data for checkpoints.
import {
  alarmNames,
  alarmRules,
  hasPassed,
  judgedWindow,
  noValues,
  watchedMetrics,
  withValue,
} from '../../run-data/alarm-rules';
import type { AlarmName, WatchedSeries } from '../../run-data/alarm-rules';

export type WatchState = {
  series: Record<string, WatchedSeries>;
  /** Alarms that hold now: each is reported once, and again only after it was over. */
  raised: AlarmName[];
};

export const nothingWatched: WatchState = { series: {}, raised: [] };

export interface Alarm {
  name: AlarmName;
  metric: string;
  /** The newest value, and the bound that it and those before it have passed. */
  value: number;
  bound: number;
  /** The evidence as a sentence. */
  sentence: string;
}

/**
 * What is known after a step with these metrics, and the alarms that it raised. Metrics that the step does not have
 * change nothing.
 */
export function watchStep(
  state: WatchState,
  metrics: Readonly<Record<string, number>>,
): { state: WatchState; alarms: Alarm[] } {
  const series = { ...state.series };
  for (const metric of watchedMetrics) {
    const value = metrics[metric];
    if (Number.isFinite(value)) series[metric] = withValue(series[metric] ?? noValues, value);
  }
  const holding = alarmsOf(series);
  return {
    state: { series, raised: holding.map(({ name }) => name) },
    alarms: holding.filter(({ name }) => !state.raised.includes(name)),
  };
}

/** The alarms that hold now. */
export const activeAlarms = ({ series }: WatchState): Alarm[] => alarmsOf(series);

const alarmsOf = (series: Readonly<Record<string, WatchedSeries>>): Alarm[] =>
  alarmNames.flatMap(name => judged(name, series) ?? []);

function judged(name: AlarmName, all: Readonly<Record<string, WatchedSeries>>): Alarm | null {
  const rule = alarmRules[name];
  const { metric, label, side, steps, limit } = rule;
  const series = all[metric];
  const judgement = series && judgedWindow(rule, series, limit === undefined ? undefined : newestOf(all[limit]));
  if (!judgement) return null;
  const { bound, label: source, values } = judgement;
  if (!values.every(value => hasPassed(rule, value, bound))) return null;
  const value = values[steps - 1];
  const passed = side === 'under' ? 'fell under' : 'rose over';
  const lasting = steps === 1 ? '' : ` for ${steps} steps`;
  const sentence = `${label} ${passed} ${source}${lasting}: ${shown(value)}, bound ${shown(bound)}`;
  return { name, metric, value, bound, sentence };
}

const newestOf = (series: WatchedSeries | undefined): number | undefined =>
  series?.newest.at(-1) ?? series?.first.at(-1);

const shown = (x: number): string => String(Number(x.toPrecision(3)));
