// Alarms for the signs of an Echo Trap (RAGEN, §3), which appear before the success rate falls: the rewards within a
// prompt group become equal, thoughts repeat, gradients spike, and entropy drifts. One alarm is for the sign of template
// collapse (RAGEN-2): reasoning stops depending on the prompt. The rules are in
// run-data/alarm-rules.ts; an alarm is active while the newest values of its metric violate the bound of its rule. Pure
// functions; the state is plain data for checkpoints.
import type { AlarmBound, AlarmRule } from '../../../envs/api/plugins/alarm';
import {
  alarmRules,
  hasPassed,
  judgedWindow,
  metricsOfRules,
  noValues,
  watchedMetric,
  withValue,
} from '../../run-data/alarm-rules';
import type { WatchedSeries } from '../../run-data/alarm-rules';

type AllSeries = Readonly<Record<string, WatchedSeries>>;

export type WatchState = {
  series: Record<string, WatchedSeries>;
  /** Active alarms. An alarm is reported when it becomes active; while it stays active, it is not reported again. */
  raised: string[];
};

export const nothingWatched: WatchState = { series: {}, raised: [] };

export interface Alarm {
  /** Name of a built-in rule, or `plugins/<name>`. */
  name: string;
  metric: string;
  /** `value` is the newest value of the metric; `bound` is the bound that the newest values violate. */
  value: number;
  bound: number;
  /** The alarm in one sentence: metric, duration, value and bound. */
  sentence: string;
}

/**
 * Adds the metrics of a step to the state. Returns the new state and the alarms that became active in this step. A
 * metric that is missing or not finite leaves its series unchanged.
 * @param own rules of plug-ins by the names of their alarms, which are judged like the built-in rules
 */
export function watchStep(
  state: WatchState,
  metrics: Readonly<Record<string, number>>,
  own: Readonly<Record<string, AlarmRule>> = {},
): { state: WatchState; alarms: Alarm[] } {
  const rules = { ...alarmRules, ...own };
  const series = withMetrics(state.series, metricsOfRules(Object.values(rules)), metrics);
  const holding = alarmsOf(series, rules);
  return {
    state: { series, raised: holding.map(({ name }) => name) },
    alarms: holding.filter(({ name }) => !state.raised.includes(name)),
  };
}

/** Returns the alarms whose built-in rules the newest values violate. */
export const activeAlarms = ({ series }: WatchState): Alarm[] => alarmsOf(series, alarmRules);

/** Returns the series with the values that `metrics` has for the metrics in `read`. */
export function withMetrics(
  series: AllSeries,
  read: Iterable<string>,
  metrics: Readonly<Record<string, number>>,
): Record<string, WatchedSeries> {
  const next = { ...series };
  for (const metric of read) {
    const value = metrics[metric];
    if (Number.isFinite(value)) next[metric] = withValue(next[metric] ?? noValues, value);
  }
  return next;
}

/** Returns the values that a rule judges and their bound; null if there are too few values. */
export function judgementOf(
  rule: AlarmRule,
  all: AllSeries,
): (AlarmBound & { metric: string; values: number[] }) | null {
  const { limit } = rule;
  const metric = watchedMetric(rule, key => all[key] !== undefined);
  const series = all[metric];
  const judgement = series && judgedWindow(rule, series, limit === undefined ? undefined : newestOf(all[limit]));
  return judgement ? { metric, ...judgement } : null;
}

const alarmsOf = (series: AllSeries, rules: Readonly<Record<string, AlarmRule>>): Alarm[] =>
  Object.entries(rules).flatMap(([name, rule]) => alarmOf(name, rule, series) ?? []);

function alarmOf(name: string, rule: AlarmRule, all: AllSeries): Alarm | null {
  const { label, side, steps, measured = 'steps' } = rule;
  const judgement = judgementOf(rule, all);
  if (!judgement) return null;
  const { metric, bound, label: source, values } = judgement;
  if (!values.every(value => hasPassed(rule, value, bound))) return null;
  const value = values[steps - 1];
  const passed = side === 'under' ? 'was below' : 'was above';
  const lasting = steps === 1 ? '' : ` in each of the last ${steps} ${measured}`;
  const sentence = `${label} ${passed} ${source}${lasting}: ${shown(value)}, bound ${shown(bound)}`;
  return { name, metric, value, bound, sentence };
}

const newestOf = (series: WatchedSeries | undefined): number | undefined =>
  series?.newest.at(-1) ?? series?.first.at(-1);

const shown = (x: number): string => String(Number(x.toPrecision(3)));
