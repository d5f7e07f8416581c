// Rollout filter of StarPO-S and RAGEN-2: trains only on prompt groups with a high score. The score is, for example,
// the deviation of the group's rewards. According to the RAGEN-2 paper, a prompt's task gradient is bounded by the
// deviation of its rewards, while the gradient of the regularisers is nearly constant. Training on prompts without
// spread therefore only moves the policy towards reasoning that ignores the input. This file selects groups of
// episodes; the caller maps episodes to samples. group-selection.ts selects the groups from their scores (top_p, top_k,
// top_k_abs, min_p).
import { maximum } from '../common/lists';
import { membersByGroup, momentsOf, type Moments } from './group-statistics';
import { selectGroups, zeroScore, type GroupSelection } from './group-selection';

/**
 * Metric that scores a group. The names are RAGEN's, except `random`, which is for comparison. RAGEN's `reward_variance`
 * is the unbiased standard deviation; `reward_std` is an alias for it.
 */
export type FilterMetric =
  | 'reward_variance'
  | 'reward_std'
  | 'reward'
  | 'reward_sum'
  | 'length'
  | 'entropy'
  | 'entropy_variance'
  | 'entropy_std'
  | 'random';

export interface RolloutFilter extends GroupSelection {
  /** `given`: the caller has scored the groups (`EpisodeValues.given`). */
  rollout_filter_metric: FilterMetric | 'given';
}

/** Per-episode values; all arrays have one entry per episode. */
export interface EpisodeValues {
  groups: ArrayLike<number>;
  /** Scores before reward normalisation. With normalisation mean_std, the deviation of every group would be 1 or 0. */
  scores: ArrayLike<number>;
  /**
   * In episodes with roles, the scores by role: one list per role with one entry per episode, NaN where an episode has
   * no such role. Statistics of rewards are then computed for each role of a group and averaged over the roles.
   */
  roleScores?: readonly ArrayLike<number>[];
  /** Mean entropy over the episode's sampled tokens; used by the entropy metrics only. */
  entropies?: ArrayLike<number>;
  /** Number of sampled tokens of the episode; used by `length` only. */
  lengths?: ArrayLike<number>;
  /** A random number that all episodes of a group share; used by `random` only. */
  draws?: ArrayLike<number>;
  /**
   * Scores of the groups, in the order of their first episodes, and the indices of the groups to keep, if they are
   * selected already; used by `given` only.
   */
  given?: { scores: ArrayLike<number>; selected?: readonly number[] };
}

export interface FilteredRollout {
  /** 1 for each kept episode, in batch order. */
  kept: Uint8Array;
  /** `groups`: ids of all groups in batch order. `scores`: the score of each group. */
  groups: number[];
  groupScores: Float32Array;
  /** Unbiased standard deviation of the scores of each group; used by the gradient buckets and the group table. */
  groupStds: Float32Array;
  /** 1 for each kept group, in the order of `groups`. */
  selected: Uint8Array;
  /** Number of kept groups divided by the number of groups. */
  keptRatio: number;
  /** `rollout/…` metrics under RAGEN's keys. */
  metrics: Record<string, number>;
}

/**
 * Returns the mean over the lists of `read`, called with the values of a group's episodes. Entries that are NaN are left
 * out; a list without other entries has no part in the mean.
 */
function meanOver(
  lists: readonly ArrayLike<number>[],
  group: readonly number[],
  read: (values: number[]) => number,
): number {
  if (lists.length === 1) return read(group.map(index => lists[0][index]));
  const found = lists.flatMap(list => {
    const own = group.map(index => list[index]).filter(value => !Number.isNaN(value));
    return own.length > 0 ? read(own) : [];
  });
  return found.reduce((sum, value) => sum + value, 0) / Math.max(found.length, 1);
}

/** Computes the group scores, the selection and the metrics. A group of one episode has deviation 0. */
export function filterRollouts(values: EpisodeValues, filter: RolloutFilter): FilteredRollout {
  const members = membersByGroup(values.groups);
  const groups = [...members.keys()] as number[];
  const indices = [...members.values()];
  const { rollout_filter_metric: metric } = filter;
  const rewards = values.roleScores ?? [values.scores];
  const measured = metric === 'given' ? { values: rewards } : measuredValues(values, metric);
  const groupScores =
    metric === 'given'
      ? Float32Array.from(values.given!.scores)
      : Float32Array.from(indices, list => meanOver(measured.values, list, own => groupScore(own, metric)));
  const selected = new Uint8Array(groups.length);
  for (const group of values.given?.selected ?? selectGroups(groupScores, filter)) selected[group] = 1;
  const kept = new Uint8Array(values.groups.length);
  indices.forEach((list, group) => selected[group] && list.forEach(index => (kept[index] = 1)));
  const count = selected.reduce((sum, bit) => sum + bit, 0);
  const keptRatio = groups.length > 0 ? count / groups.length : 0;
  return {
    kept,
    groups,
    groupScores,
    groupStds: Float32Array.from(indices, list => meanOver(rewards, list, own => momentsOf(own).std)),
    selected,
    keptRatio,
    metrics: {
      ...spreadMetrics(rewards, indices, selected, ''),
      ...spreadMetrics(rewards, indices, selected, 'reward_'),
      ...(measured.name ? spreadMetrics(measured.values, indices, selected, `${measured.name}_`) : {}),
      ...zeroVariance(rewards, indices),
      'rollout/filter_kept_count': count,
      'rollout/filter_kept_ratio': keptRatio,
      'rollout/filter_zero_count': groupScores.reduce((sum, score) => sum + (Math.abs(score) <= zeroScore ? 1 : 0), 0),
    },
  };
}

/** Returns one group's score from the values of its episodes. */
export function groupScore(values: readonly number[], metric: FilterMetric): number {
  const { mean, std, count } = momentsOf(values);
  switch (metric) {
    case 'reward_variance':
    case 'reward_std':
    case 'entropy_variance':
    case 'entropy_std':
      return std;
    case 'reward_sum':
      return mean * count;
    case 'reward':
    case 'entropy':
    case 'length':
    case 'random':
      return mean;
  }
}

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
}: Pick<EpisodeValues, 'scores' | 'groups'>): Record<string, number> {
  const indices = [...membersByGroup(groups).values()].filter(({ length }) => length > 1);
  return {
    ...spreadMetrics([scores], indices, new Uint8Array(indices.length), 'reward_'),
    ...zeroVariance([scores], indices),
  };
}

/** Returns the share of the groups whose scores are all equal; no metric if there are no groups. */
function zeroVariance(scores: readonly ArrayLike<number>[], indices: readonly number[][]): Record<string, number> {
  if (indices.length === 0) return {};
  const equal = indices.filter(list => meanOver(scores, list, own => momentsOf(own).std) <= zeroScore).length;
  return { 'rollout/zero_variance_ratio': equal / indices.length };
}

/**
 * Returns the episode values from which the metric is computed, and the name under which statistics of these values are
 * logged (undefined for rewards and random numbers). Throws if the values are missing.
 */
function measuredValues(
  values: EpisodeValues,
  metric: FilterMetric,
): { values: readonly ArrayLike<number>[]; name?: string } {
  const source = metric.split('_', 1)[0] as 'reward' | 'length' | 'entropy' | 'random';
  const measured = { reward: values.scores, length: values.lengths, entropy: values.entropies, random: values.draws };
  if (source === 'reward') return { values: values.roleScores ?? [values.scores] };
  const found = measured[source];
  if (!found) throw new Error(`rollout filter: metric ${metric} needs the ${source} of each episode`);
  return source === 'random' ? { values: [found] } : { values: [found], name: source };
}

/**
 * Returns statistics of the values in a group, averaged once over all groups and once over the kept groups. The
 * statistics are standard deviation, maximum and mean; for rewards, the sum too.
 */
function spreadMetrics(
  values: readonly ArrayLike<number>[],
  indices: readonly number[][],
  selected: Uint8Array,
  name: string,
): Record<string, number> {
  const spreads = indices.map(list => ({
    count: list.length,
    mean: meanOver(values, list, own => momentsOf(own).mean),
    std: meanOver(values, list, own => momentsOf(own).std),
    max: meanOver(values, list, maximum),
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
