// Rollout filter of StarPO-S and RAGEN-2: trains only on prompt groups with a high score. The score is, for example,
// the deviation of the group's rewards. According to the RAGEN-2 paper, a prompt's task gradient is bounded by the
// deviation of its rewards, while the gradient of the regularisers is nearly constant. Training on prompts without
// spread therefore only moves the policy towards reasoning that ignores the input. A filter scores the groups
// (built-in-filters.ts), group-selection.ts selects them, and this file describes the selection by metrics.
import type { FilterEpisode, PromptGroup } from '../../envs/api/plugins/filter';
import { maximum } from '../common/lists';
import { membersByGroup, momentsOf, type Moments } from './group-statistics';
import { zeroScore } from './group-selection';

/** The scores of groups, one per group, and the indices of the groups to keep. */
export interface ScoredSelection {
  scores: Float32Array;
  selected: readonly number[];
}

export interface FilteredRollout {
  /** Ids of all groups in batch order. */
  groups: number[];
  /** Unbiased standard deviation of the scores of each group; used by the gradient buckets and the group table. */
  groupStds: Float32Array;
  /** 1 for each kept group, in the order of `groups`. */
  selected: Uint8Array;
  /** `rollout/…` metrics under RAGEN's keys. */
  metrics: Record<string, number>;
}

/** Values of episodes that a filter scores, and their name in metrics. */
export interface MeasuredValues {
  name: string;
  of: (episode: FilterEpisode) => number;
}

/** Lists of values of one group; in episodes with roles, one list per role. */
type ValueLists = readonly (readonly number[])[];

/**
 * Returns the scores of a group before reward normalisation (with normalisation mean_std, the deviation of every group
 * would be 1 or 0): one list or, in episodes with roles, one list per role that has scores.
 */
export function rewardsOf({ episodes }: Pick<PromptGroup, 'episodes'>): number[][] {
  if (!episodes.some(({ roleScores }) => roleScores)) return [episodes.map(({ score }) => score)];
  const roles = new Set(episodes.flatMap(({ roleScores }) => Object.keys(roleScores ?? {})));
  return [...roles].map(role => episodes.flatMap(({ roleScores }) => roleScores?.[role] ?? []));
}

/** Returns the mean of `read` over the lists of values of a group; 0 without lists. */
export const meanOverLists = (lists: ValueLists, read: (values: readonly number[]) => number): number =>
  lists.reduce((sum, values) => sum + read(values), 0) / Math.max(lists.length, 1);

/**
 * Describes which groups a filter keeps. A group of one episode has deviation 0.
 * @param measured values of which metrics are logged besides those of rewards
 */
export function filterRollouts(
  groups: readonly PromptGroup[],
  { scores, selected: indices }: ScoredSelection,
  measured?: MeasuredValues,
): FilteredRollout {
  const selected = new Uint8Array(groups.length);
  for (const index of indices) selected[index] = 1;
  const rewards = groups.map(rewardsOf);
  const sizes = groups.map(({ episodes }) => episodes.length);
  const values = measured && groups.map(({ episodes }) => [episodes.map(measured.of)]);
  return {
    groups: groups.map(({ group }) => group),
    groupStds: Float32Array.from(rewards, deviation),
    selected,
    metrics: {
      ...spreadMetrics(rewards, sizes, selected, ''),
      ...spreadMetrics(rewards, sizes, selected, 'reward_'),
      ...(values && spreadMetrics(values, sizes, selected, `${measured.name}_`)),
      ...zeroVariance(rewards),
      'rollout/filter_kept_count': indices.length,
      'rollout/filter_kept_ratio': groups.length > 0 ? indices.length / groups.length : 0,
      'rollout/filter_zero_count': scores.reduce((sum, score) => sum + (Math.abs(score) <= zeroScore ? 1 : 0), 0),
    },
  };
}

const deviation = (lists: ValueLists): number => meanOverLists(lists, values => momentsOf(values).std);

/**
 * `filter_loss_scaling`: returns the factor by which all advantages are multiplied. A smaller `keptRatio` gives a
 * smaller factor, so that a step over fewer prompts changes the weights less.
 */
export function filterLossScale(mode: 'none' | 'linear' | 'sqrt', keptRatio: number): number {
  return mode === 'none' ? 1 : mode === 'linear' ? keptRatio : Math.sqrt(keptRatio);
}

/**
 * Returns the statistics of the scores in prompt groups that do not depend on a filter: `rollout/in_group_reward_<stat>`
 * and `rollout/zero_variance_ratio`. Groups of one episode are left out, because one score has no spread; without a
 * larger group there are no metrics.
 */
export function groupRewardMetrics({
  scores,
  groups,
}: {
  scores: ArrayLike<number>;
  groups: ArrayLike<number>;
}): Record<string, number> {
  const members = [...membersByGroup(groups).values()].filter(({ length }) => length > 1);
  const rewards = members.map(indices => [indices.map(index => scores[index])]);
  const sizes = members.map(({ length }) => length);
  return { ...spreadMetrics(rewards, sizes, new Uint8Array(sizes.length), 'reward_'), ...zeroVariance(rewards) };
}

/** Returns the share of the groups whose scores are all equal; no metric if there are no groups. */
function zeroVariance(rewards: readonly ValueLists[]): Record<string, number> {
  if (rewards.length === 0) return {};
  const equal = rewards.filter(lists => deviation(lists) <= zeroScore).length;
  return { 'rollout/zero_variance_ratio': equal / rewards.length };
}

/**
 * Returns statistics of the values in a group, averaged once over all groups and once over the kept groups. The
 * statistics are standard deviation, maximum and mean; for rewards, the sum too.
 * @param sizes number of episodes of each group
 */
function spreadMetrics(
  groups: readonly ValueLists[],
  sizes: readonly number[],
  selected: Uint8Array,
  name: string,
): Record<string, number> {
  const spreads = groups.map((lists, group) => ({
    count: sizes[group],
    mean: meanOverLists(lists, values => momentsOf(values).mean),
    std: deviation(lists),
    max: meanOverLists(lists, maximum),
  }));
  const metrics: Record<string, number> = {};
  const chosen = spreads.filter((_, group) => selected[group]);
  for (const [prefix, some] of [
    ['', spreads],
    ['chosen_', chosen],
  ] as const) {
    if (some.length === 0) continue;
    const average = (read: (spread: Moments & { max: number }) => number): number =>
      some.reduce((sum, spread) => sum + read(spread), 0) / some.length;
    const key = `rollout/${prefix}in_group_${name}`;
    metrics[`${key}std`] = average(spread => spread.std);
    metrics[`${key}max`] = average(spread => spread.max);
    metrics[`${key}mean`] = average(spread => spread.mean);
    if (name === 'reward_') metrics[`${key}sum`] = average(spread => spread.mean * spread.count);
  }
  return metrics;
}
