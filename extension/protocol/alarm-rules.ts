// The rules of the watch for Echo Traps (RAGEN, §3): each is a bound on one metric of a step, made from the run's own first steps or recent
// past, which the newest steps in a row must have passed. The trainer raises alarms by them (trainer/diagnostics/alarms.ts), and the
// collapse page draws the same bounds. Thresholds are by RAGEN's account of collapsed runs and its early stop. Pure.

import { median } from './estimate';

/** How many first and newest values of a metric are remembered. */
const remembered = { first: 10, newest: 20 } as const;

/** Values of a metric, oldest first; the newest ones begin after the first ones. */
export type WatchedSeries = { first: number[]; newest: number[] };

export const noValues: WatchedSeries = { first: [], newest: [] };

/** The series with one more value. */
export const withValue = ({ first, newest }: WatchedSeries, value: number): WatchedSeries =>
  first.length < remembered.first
    ? { first: [...first, value], newest }
    : { first, newest: [...newest, value].slice(-remembered.newest) };

export const alarmNames = [
  'reward_variance',
  'gradient_spike',
  'entropy_rise',
  'entropy_drop',
  'thought_repetition',
  'thought_diversity',
  'response_length',
  'invalid_answers',
] as const;
export type AlarmName = (typeof alarmNames)[number];

export interface AlarmRule {
  metric: string;
  /** What the metric is called in a sentence. */
  words: string;
  /** The bound, and in words what it is made from. */
  bound(series: WatchedSeries): { bound: number; words: string };
  side: 'under' | 'over';
  /** Newest steps in a row, all after the first ones, that must have passed the bound. */
  steps: number;
}

/** A share of the mean of the first steps. */
const shareOfFirst =
  (share: number): AlarmRule['bound'] =>
  ({ first }) => ({ bound: share * mean(first), words: `${percent(share)} of its first-${first.length}-step mean` });

/** A multiple of the median of what came before the newest value. */
const timesRecent =
  (times: number): AlarmRule['bound'] =>
  ({ first, newest }) => {
    const before = [...first, ...newest].slice(0, -1).slice(-remembered.newest);
    return { bound: times * median(before), words: `${times} × the median of the ${before.length} steps before` };
  };

const fixed =
  (bound: number): AlarmRule['bound'] =>
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
  entropy_rise: { metric: 'actor/entropy', words: 'entropy', bound: shareOfFirst(2), side: 'over', steps: 3 },
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
};

/** The bound that each value of a rule's metric was held against; NaN for the first ones, which raise nothing, and where a value is missing. */
export function boundsOver({ bound }: AlarmRule, values: ArrayLike<number>): Float64Array {
  let series = noValues;
  return Float64Array.from(values, value => {
    if (!Number.isFinite(value)) return NaN;
    series = withValue(series, value);
    return series.newest.length > 0 ? bound(series).bound : NaN;
  });
}

/** How many values in a row have passed their bounds (`boundsOver`), at each row: up to it, and at most so far. */
export function streaksOver(
  { side }: AlarmRule,
  values: ArrayLike<number>,
  bounds: ArrayLike<number>,
): { now: Int32Array; most: Int32Array } {
  const [now, most] = [new Int32Array(bounds.length), new Int32Array(bounds.length)];
  let [streak, longest] = [0, 0];
  for (let i = 0; i < bounds.length; i++) {
    // What was not measured says nothing.
    if (Number.isFinite(bounds[i])) streak = (side === 'under' ? values[i] < bounds[i] : values[i] > bounds[i]) ? streak + 1 : 0; // prettier-ignore
    longest = Math.max(longest, streak);
    [now[i], most[i]] = [streak, longest];
  }
  return { now, most };
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

const percent = (share: number): string => `${Math.round(100 * share)} %`;
