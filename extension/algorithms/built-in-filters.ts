// The built-in rollout filters by name, in the interface that plug-ins implement (envs/api/plugins/filter.ts). The names
// are RAGEN's, except `random`, which is for comparison. RAGEN's `reward_variance` is the unbiased standard deviation;
// `reward_std` is an alias for it. In episodes with roles, rewards are compared within each role of a group.
import type { Filter, FilterEpisode } from '../../envs/api/plugins/filter';
import { momentsOf, type Moments } from './group-statistics';
import { meanOverLists, rewardsOf, type MeasuredValues } from './rollout-filter';

export const filterMetrics = [
  'reward_variance',
  'reward_std',
  'reward',
  'reward_sum',
  'length',
  'entropy',
  'entropy_variance',
  'entropy_std',
  'random',
] as const;

export type FilterMetric = (typeof filterMetrics)[number];

export interface BuiltInFilter extends Filter {
  /** Absent if the filter scores rewards or draws. */
  measured?: MeasuredValues;
}

const byRewards = (read: (rewards: Moments) => number): BuiltInFilter => ({
  score: groups => groups.map(group => meanOverLists(rewardsOf(group), values => read(momentsOf(values)))),
});

const byValues = (measured: MeasuredValues, read: (values: Moments) => number): BuiltInFilter => ({
  measured,
  score: groups => groups.map(({ episodes }) => read(momentsOf(episodes.map(measured.of)))),
});

/** @throws Error if the episode has no entropy, which filters receive only if they declare it in `needs` */
function entropyOf({ id, entropy }: FilterEpisode): number {
  if (entropy === undefined) throw new Error(`rollout filter: episode ${id} has no entropy`);
  return entropy;
}

const byEntropies = (read: (entropies: Moments) => number): BuiltInFilter => ({
  ...byValues({ name: 'entropy', of: entropyOf }, read),
  needs: 'entropy',
});

const mean = (values: Moments): number => values.mean;
const deviation = (values: Moments): number => values.std;

export const builtInFilters: Readonly<Record<FilterMetric, BuiltInFilter>> = {
  reward_variance: byRewards(deviation),
  reward_std: byRewards(deviation),
  reward: byRewards(mean),
  reward_sum: byRewards(rewards => rewards.mean * rewards.count),
  length: byValues({ name: 'length', of: ({ tokens }) => tokens }, mean),
  entropy: byEntropies(mean),
  entropy_variance: byEntropies(deviation),
  entropy_std: byEntropies(deviation),
  random: { score: groups => groups.map(({ draw }) => draw) },
};
