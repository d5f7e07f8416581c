// Alarm rules for Echo Traps (RAGEN, §3) and template collapse (RAGEN-2). Each rule bounds one metric. The alarm of a rule is raised when the metric
// has exceeded the bound in each of the newest `steps` steps. These steps are called the judged window. A bound is a
// constant, or it is computed from the run's earlier steps. The trainer raises alarms with these rules
// (trainer/diagnostics/alarms.ts), and the collapse page draws the same bounds. The rules implement the interface of
// plug-ins (envs/api/plugins/alarm.ts). Thresholds follow RAGEN's early stopping and its description of collapsed runs.
// Pure functions.
import type { AlarmBound, AlarmRule } from '../../envs/api/plugins/alarm';
import { maximum } from '../common/lists';
import { median } from '../common/mean-estimate';

/** Maximum number of values stored per metric: `first` for the first steps, `newest` for the newest steps. */
const remembered = { first: 10, newest: 20 } as const;

/** Minimum number of earlier steps from which a bound can be computed. */
const shortestBaseline = 3;

/**
 * Values of a metric, oldest first. A value in `first` is not repeated in `newest`. `highest` is the largest value that
 * is no longer stored; it is absent while all values are stored.
 */
export type WatchedSeries = { first: number[]; newest: number[]; highest?: number };

export const noValues: WatchedSeries = { first: [], newest: [] };

/** Returns the series with one more value. */
export function withValue({ first, newest, highest }: WatchedSeries, value: number): WatchedSeries {
  if (first.length < remembered.first) return { first: [...first, value], newest };
  const stored = [...newest, value];
  const dropped = stored.length > remembered.newest ? stored.shift() : undefined;
  if (dropped === undefined) return { first, newest: stored };
  return { first, newest: stored, highest: Math.max(highest ?? dropped, dropped) };
}

/** Returns all stored values, oldest first. */
const valuesOf = ({ first, newest }: WatchedSeries): number[] => [...first, ...newest];

export const alarmNames = [
  'reward_variance',
  'gradient_spike',
  'entropy_rise',
  'entropy_drop',
  'thought_repetition',
  'thought_diversity',
  'response_length',
  'invalid_answers',
  'missing_thoughts',
  'prompt_dependence',
] as const;
export type AlarmName = (typeof alarmNames)[number];

type BoundOf = AlarmRule['bound'];

/** Returns a rule whose bound is a share of the mean over the first steps. */
const shareOfFirst =
  (share: number): BoundOf =>
  before => {
    const first = before.slice(0, remembered.first);
    if (first.length < shortestBaseline) return null;
    return { bound: share * mean(first), label: `${percent(share)} of its mean over the first ${first.length} steps` };
  };

/**
 * The bound is twice the mean over the first steps, or the midpoint between this mean and the metric's maximum,
 * whichever is lower. Without the midpoint, the bound could exceed the maximum and never be reached.
 */
const riseOverFirst: BoundOf = (before, limit) => {
  const twice = shareOfFirst(2)(before);
  if (!twice || limit === undefined) return twice;
  const halfway = (twice.bound / 2 + limit) / 2;
  if (twice.bound <= halfway) return twice;
  const steps = Math.min(before.length, remembered.first);
  return { bound: halfway, label: `the midpoint between its mean over the first ${steps} steps and its maximum` };
};

/** Returns a rule whose bound is a multiple of the median over the most recent steps before the judged window. */
const timesRecent =
  (times: number): BoundOf =>
  before => {
    const recent = before.slice(-remembered.newest);
    if (recent.length < shortestBaseline) return null;
    return { bound: times * median(recent), label: `${times} × its median over the preceding ${recent.length} steps` };
  };

/** Returns a rule whose bound is a share of the largest earlier value. */
export const shareOfBest =
  (share: number): BoundOf =>
  (before, _limit, highest) => {
    if (before.length < shortestBaseline) return null;
    const best = maximum(before, highest);
    return { bound: share * best, label: `${percent(share)} of its best earlier value` };
  };

const fixed =
  (bound: number): BoundOf =>
  () => ({ bound, label: percent(bound) });

/** A built-in rule; the Collapse page draws its bound. */
export interface BuiltInRule extends AlarmRule {
  /** What the bound rests on: a clause such as 'from RAGEN’s early stop'; by default, 'a rule of thumb'. */
  basis?: string;
}

export const alarmRules: Readonly<Record<AlarmName, BuiltInRule>> = {
  reward_variance: {
    metric: 'rollout/in_group_reward_std',
    label: 'in-group reward std',
    bound: shareOfFirst(0.1),
    side: 'under',
    steps: 5,
    basis: 'from RAGEN’s early stop',
  },
  gradient_spike: {
    metric: 'actor/grad_norm',
    label: 'gradient norm',
    bound: timesRecent(10),
    side: 'over',
    steps: 1,
  },
  entropy_rise: {
    metric: 'actor/entropy',
    label: 'entropy',
    bound: riseOverFirst,
    side: 'over',
    steps: 3,
    limit: 'actor/entropy_limit',
  },
  entropy_drop: { metric: 'actor/entropy', label: 'entropy', bound: shareOfFirst(0.1), side: 'under', steps: 5 },
  thought_repetition: {
    metric: 'thoughts/most_frequent',
    label: 'share of the most frequent thought',
    bound: fixed(0.5),
    side: 'over',
    steps: 3,
  },
  thought_diversity: {
    metric: 'thoughts/distinct_2',
    label: 'share of distinct word pairs among the thoughts',
    bound: shareOfFirst(0.25),
    side: 'under',
    steps: 5,
  },
  response_length: {
    metric: 'response_length/mean',
    instead: 'response_length/characters', // runs of other trainers without token counts
    label: 'response length',
    bound: shareOfFirst(2),
    side: 'over',
    steps: 5,
  },
  invalid_answers: {
    metric: 'rollout/invalid_answer_rate',
    label: 'share of answers without a valid action',
    bound: fixed(0.9),
    side: 'over',
    steps: 3,
  },
  missing_thoughts: {
    metric: 'thoughts/rate',
    label: 'share of answers with a thought',
    bound: fixed(0.1),
    side: 'under',
    steps: 3,
  },
  prompt_dependence: {
    metric: 'collapse_trajectory_sample/mi_estimate',
    label: 'mutual information of prompt and reasoning',
    bound: shareOfBest(0.4), // chosen on half of the seeds of media/sweeps/claim_1_collapse.yaml
    side: 'under',
    steps: 1,
    measured: 'diagnoses',
    basis: 'measured: in time in 10 of 12 collapses, and in none of 12 other runs (REPRODUCTION.md, claim 1)',
  },
};

type RuleMetrics = Pick<AlarmRule, 'metric' | 'instead' | 'limit'>;

/** Returns the metrics that rules read. */
export const metricsOfRules = (rules: Iterable<RuleMetrics>): Set<string> =>
  new Set(
    [...rules].flatMap(({ metric, instead, limit }) => [metric, instead, limit].filter(key => key !== undefined)),
  );

/** Metrics that the built-in rules read. */
export const watchedMetrics: ReadonlySet<string> = metricsOfRules(Object.values(alarmRules));

/** Returns the metric that a rule reads in a run; `has` returns whether the run has a metric. */
export const watchedMetric = ({ metric, instead }: RuleMetrics, has: (metric: string) => boolean): string =>
  instead !== undefined && !has(metric) && has(instead) ? instead : metric;

/** Returns the newest `rule.steps` values and their bound; null if there are too few values. */
export function judgedWindow(
  { bound: boundOf, steps }: AlarmRule,
  series: WatchedSeries,
  limit?: number,
): (AlarmBound & { values: number[] }) | null {
  const values = valuesOf(series);
  if (values.length < steps) return null;
  const bound = boundOf(values.slice(0, -steps), limit, series.highest);
  return bound && { ...bound, values: values.slice(-steps) };
}

/** Returns what a rule's bound rests on. */
export const basisOf = ({ basis = 'a rule of thumb' }: Pick<BuiltInRule, 'basis'>): string => basis;

/** Whether a value exceeds a rule's bound. */
export const hasPassed = ({ side }: Pick<AlarmRule, 'side'>, value: number, bound: number): boolean =>
  side === 'under' ? value < bound : value > bound;

/**
 * Returns one bound per row. A row's bound applies to the judged window that ends at the row.
 * @param limits the value of the metric `rule.limit` at each row, for rules with a `limit`
 * @returns bounds; NaN at rows without a value and at rows with too few earlier values
 */
export function boundsOver(rule: AlarmRule, values: ArrayLike<number>, limits?: ArrayLike<number>): Float64Array {
  let series = noValues;
  return Float64Array.from(values, (value, row) => {
    if (!Number.isFinite(value)) return NaN;
    series = withValue(series, value);
    const limit = limits?.[row] ?? NaN;
    return judgedWindow(rule, series, Number.isFinite(limit) ? limit : undefined)?.bound ?? NaN;
  });
}

/**
 * Returns two numbers per row. `now` is the number of consecutive values, up to the row, that exceed the row's bound
 * (`boundsOver`). `most` is the maximum of `now` up to the row.
 */
export function streaksOver(
  rule: AlarmRule,
  values: ArrayLike<number>,
  bounds: ArrayLike<number>,
): { now: Int32Array; most: Int32Array } {
  const [now, most] = [new Int32Array(bounds.length), new Int32Array(bounds.length)];
  const judged: number[] = [];
  let [streak, longest, last] = [0, 0, NaN];
  for (let row = 0; row < bounds.length; row++) {
    const [value, bound] = [values[row], bounds[row]];
    if (Number.isFinite(value)) judged.push(value); // missing values are skipped
    if (Number.isFinite(value) && Number.isFinite(bound)) {
      const passed = hasPassed(rule, value, bound);
      // If the bound has changed, the streak is recounted under the new bound. Values from which the new bound was
      // computed are not counted.
      streak = !passed ? 0 : bound === last ? streak + 1 : streakUnder(rule, judged, bound);
      last = bound;
    }
    longest = Math.max(longest, streak);
    [now[row], most[row]] = [streak, longest];
  }
  return { now, most };
}

function streakUnder(rule: AlarmRule, values: readonly number[], bound: number): number {
  const longest = Math.max(rule.steps, values.length - remembered.first);
  let streak = 0;
  while (streak < longest && streak < values.length && hasPassed(rule, values[values.length - 1 - streak], bound))
    streak++;
  return streak;
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

const percent = (share: number): string => `${Math.round(100 * share)} %`;
