// The rules of the alarms for Echo Traps (RAGEN, §3): each is a bound on one metric, which the newest steps in a row must pass. A bound is fixed, or
// comes from the run's own steps before those that are judged: at least three, at most the first ten. The trainer raises alarms by these rules
// (trainer/diagnostics/alarms.ts), and the collapse page draws the same bounds. Thresholds follow RAGEN's account of collapsed runs and its
// early stop. Pure.
import { median } from './estimate';

/** How many first and newest values of a metric are remembered. */
const remembered = { first: 10, newest: 20 } as const;

/** Fewer steps than these are no baseline. */
const shortestBaseline = 3;

/** Values of a metric, oldest first; the newest ones begin after the first ones. */
export type WatchedSeries = { first: number[]; newest: number[] };

export const noValues: WatchedSeries = { first: [], newest: [] };

/** The series with one more value. */
export const withValue = ({ first, newest }: WatchedSeries, value: number): WatchedSeries =>
  first.length < remembered.first
    ? { first: [...first, value], newest }
    : { first, newest: [...newest, value].slice(-remembered.newest) };

/** All values that are remembered, oldest first. */
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
] as const;
export type AlarmName = (typeof alarmNames)[number];

export interface AlarmRule {
  metric: string;
  /** What the metric is called in a sentence. */
  words: string;
  /** What the bound is made from. */
  bound: BoundOf;
  side: 'under' | 'over';
  /** Newest steps in a row that must have passed the bound. */
  steps: number;
  /** The metric whose newest value is the largest that `metric` can have. */
  limit?: string;
}

/** A bound, and in words what it is made from. */
export interface Bound {
  bound: number;
  words: string;
}

/**
 * @param before values before those that are judged, of which the first ten and the last twenty are known
 * @param limit the largest value that the metric can have, where that is known
 * @returns null where these are too few for a bound
 */
type BoundOf = (before: readonly number[], limit?: number) => Bound | null;

/** A share of the mean of the first steps. */
const shareOfFirst =
  (share: number): BoundOf =>
  before => {
    const first = before.slice(0, remembered.first);
    if (first.length < shortestBaseline) return null;
    return { bound: share * mean(first), words: `${percent(share)} of its first-${first.length}-step mean` };
  };

/** Twice the mean of the first steps; halfway from there to the limit where that is less, since twice the mean might be out of reach. */
const riseOverFirst: BoundOf = (before, limit) => {
  const twice = shareOfFirst(2)(before);
  if (!twice || limit === undefined) return twice;
  const halfway = (twice.bound / 2 + limit) / 2;
  if (twice.bound <= halfway) return twice;
  const steps = Math.min(before.length, remembered.first);
  return { bound: halfway, words: `halfway from its first-${steps}-step mean to its largest value` };
};

/** A multiple of the median of what came before. */
const timesRecent =
  (times: number): BoundOf =>
  before => {
    const recent = before.slice(-remembered.newest);
    if (recent.length < shortestBaseline) return null;
    return { bound: times * median(recent), words: `${times} × the median of the ${recent.length} steps before` };
  };

const fixed =
  (bound: number): BoundOf =>
  () => ({ bound, words: percent(bound) });

export const alarmRules: Readonly<Record<AlarmName, AlarmRule>> = {
  reward_variance: {
    metric: 'rollout/in_group_reward_std',
    words: 'in-group reward std',
    bound: shareOfFirst(0.1),
    side: 'under',
    steps: 5,
  },
  gradient_spike: {
    metric: 'actor/grad_norm',
    words: 'gradient norm',
    bound: timesRecent(10),
    side: 'over',
    steps: 1,
  },
  entropy_rise: {
    metric: 'actor/entropy',
    words: 'entropy',
    bound: riseOverFirst,
    side: 'over',
    steps: 3,
    limit: 'actor/entropy_limit',
  },
  entropy_drop: { metric: 'actor/entropy', words: 'entropy', bound: shareOfFirst(0.1), side: 'under', steps: 5 },
  thought_repetition: {
    metric: 'thoughts/most_frequent',
    words: 'share of the most frequent thought',
    bound: fixed(0.5),
    side: 'over',
    steps: 3,
  },
  thought_diversity: {
    metric: 'thoughts/distinct_2',
    words: 'share of distinct word pairs among the thoughts',
    bound: shareOfFirst(0.25),
    side: 'under',
    steps: 5,
  },
  response_length: {
    metric: 'response_length/mean',
    words: 'response length',
    bound: shareOfFirst(2),
    side: 'over',
    steps: 5,
  },
  invalid_answers: {
    metric: 'rollout/invalid_answer_rate',
    words: 'share of answers without a valid action',
    bound: fixed(0.9),
    side: 'over',
    steps: 3,
  },
  missing_thoughts: {
    metric: 'thoughts/rate',
    words: 'share of answers with a thought',
    bound: fixed(0.1),
    side: 'under',
    steps: 3,
  },
};

/** Metrics that the rules read. */
export const watchedMetrics: ReadonlySet<string> = new Set(
  Object.values(alarmRules).flatMap(({ metric, limit }) => (limit === undefined ? [metric] : [metric, limit])),
);

/** The newest values that a rule judges, with their bound; null while there are too few. */
export function judgedWindow(
  { bound: boundOf, steps }: AlarmRule,
  series: WatchedSeries,
  limit?: number,
): (Bound & { values: number[] }) | null {
  const values = valuesOf(series);
  if (values.length < steps) return null;
  const bound = boundOf(values.slice(0, -steps), limit);
  return bound && { ...bound, values: values.slice(-steps) };
}

/** Whether a value has passed a rule's bound. */
export const hasPassed = ({ side }: Pick<AlarmRule, 'side'>, value: number, bound: number): boolean =>
  side === 'under' ? value < bound : value > bound;

/**
 * The bound that the values up to each row were judged by.
 * @param limits the rule's limit at each row, where it has one
 * @returns NaN at rows that were not judged, and where a value is missing
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

/** How many values in a row have passed their bound (`boundsOver`), at each row: up to it, and at most so far. */
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
    if (Number.isFinite(value)) judged.push(value); // what was not measured says nothing
    if (Number.isFinite(value) && Number.isFinite(bound)) {
      const passed = hasPassed(rule, value, bound);
      // The values before a new bound are judged by it again, but those that it is made from.
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
