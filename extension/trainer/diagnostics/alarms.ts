// The watch for Echo Traps (RAGEN, §3): rewards within a prompt group come to be all alike, thoughts repeat, gradients spike and entropy
// runs off, before success falls. Each alarm is a rule over the newest steps of one metric, compared with the run's own first steps or
// recent past, and states its evidence. Pure functions; what they remember is plain data for checkpoints.

/** How many first and newest values of a metric are remembered. */
const remembered = { first: 10, newest: 20 } as const;

/** Values of a metric, oldest first; the newest ones begin after the first ones. */
export type Series = { first: number[]; newest: number[] };

export type WatchState = {
  series: Record<string, Series>;
  /** Alarms that hold now: each is told once, and again only after it was over. */
  raised: AlarmName[];
};

export const nothingWatched: WatchState = { series: {}, raised: [] };

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

export interface Alarm {
  name: AlarmName;
  metric: string;
  /** The newest value, and the bound that it and those before it have passed. */
  value: number;
  bound: number;
  /** The evidence as a sentence. */
  sentence: string;
}

interface Rule {
  metric: string;
  /** What the metric is called in a sentence. */
  words: string;
  /** The bound, and in words what it is made from. */
  bound(series: Series): { bound: number; words: string };
  side: 'under' | 'over';
  /** Newest steps in a row, all after the first ones, that must have passed the bound. */
  steps: number;
}

/** A share of the mean of the first steps. */
const shareOfFirst =
  (share: number): Rule['bound'] =>
  ({ first }) => ({ bound: share * mean(first), words: `${percent(share)} of its first-${first.length}-step mean` });

/** A multiple of the median of what came before the newest value. */
const timesRecent =
  (times: number): Rule['bound'] =>
  ({ first, newest }) => {
    const before = [...first, ...newest].slice(0, -1).slice(-remembered.newest);
    return { bound: times * median(before), words: `${times} × the median of the ${before.length} steps before` };
  };

const fixed =
  (bound: number): Rule['bound'] =>
  () => ({ bound, words: percent(bound) });

/** The rules; thresholds by RAGEN's account of collapsed runs and its early stop. */
export const rules: Readonly<Record<AlarmName, Rule>> = {
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

/** What is known after a step with these metrics, and the alarms that it raised. Metrics that the step does not have change nothing. */
export function watchStep(
  state: WatchState,
  metrics: Readonly<Record<string, number>>,
): { state: WatchState; alarms: Alarm[] } {
  const series = { ...state.series };
  const watched = new Set(Object.values(rules).map(({ metric }) => metric));
  for (const metric of watched) {
    const value = metrics[metric];
    if (!Number.isFinite(value)) continue;
    const { first, newest } = series[metric] ?? { first: [], newest: [] };
    series[metric] =
      first.length < remembered.first
        ? { first: [...first, value], newest }
        : { first, newest: [...newest, value].slice(-remembered.newest) };
  }
  const holding = alarmsOf(series);
  return {
    state: { series, raised: holding.map(({ name }) => name) },
    alarms: holding.filter(({ name }) => !state.raised.includes(name)),
  };
}

/** The alarms that hold now. */
export const standingAlarms = ({ series }: WatchState): Alarm[] => alarmsOf(series);

const alarmsOf = (series: Readonly<Record<string, Series>>): Alarm[] =>
  alarmNames.flatMap(name => judged(name, series[rules[name].metric]) ?? []);

function judged(name: AlarmName, series: Series | undefined): Alarm | null {
  const { metric, words, bound: boundOf, side, steps } = rules[name];
  const newest = series?.newest.slice(-steps) ?? []; // the first steps are what others are compared with
  if (!series || newest.length < steps) return null;
  const { bound, words: source } = boundOf(series);
  if (!newest.every(x => (side === 'under' ? x < bound : x > bound))) return null;
  const value = newest[steps - 1];
  const passed = side === 'under' ? 'fell under' : 'rose over';
  const lasting = steps === 1 ? '' : ` for ${steps} steps`;
  const sentence = `${words} ${passed} ${source}${lasting}: ${shown(value)}, bound ${shown(bound)}`;
  return { name, metric, value, bound, sentence };
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const percent = (share: number): string => `${Math.round(100 * share)} %`;
const shown = (x: number): string => String(Number(x.toPrecision(3)));
