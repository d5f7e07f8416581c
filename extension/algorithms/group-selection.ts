// Selects the prompt groups to keep. The input is one score per group. The four strategies are those of RAGEN-2's
// SNR-adaptive rollout filter. Sums of the float32 scores are computed in double precision. Equal scores keep batch
// order, so selections are deterministic.
import { maximum, minimum } from '../common/lists';
import { UserError } from '../common/user-error';
import { membersByGroup } from './group-statistics';

/** Values of RAGEN's key `rollout_filter_strategy`. Messages list them in this order. */
export const filterStrategies = ['top_p', 'top_k', 'top_k_abs', 'min_p'] as const;
export const filterTypes = ['largest', 'smallest'] as const;
export const topPModes = ['linear', 'softmax'] as const;

/** RAGEN's `actor_rollout_ref.rollout.rollout_filter_*` keys that control the selection. */
export interface GroupSelection {
  /**
   * The meaning of this value depends on the strategy. top_p: share of the sum of all scores. top_k: share of the
   * groups. top_k_abs: number of groups. min_p: share of the best score.
   */
  rollout_filter_value: number;
  rollout_filter_strategy: (typeof filterStrategies)[number];
  rollout_filter_type: (typeof filterTypes)[number];
  /** If false, groups whose score is 0 (within 1e-10) are removed before the selection. */
  rollout_filter_include_zero: boolean;
  rollout_filter_top_p_prob_mode: (typeof topPModes)[number];
  /**
   * Used by linear top_p only: this amount is subtracted from the sum that the scores of the selected groups must
   * reach. If the difference is not positive, no group is selected.
   */
  rollout_filter_selection_eps: number;
}

/** Returns the indices of the groups that `selectGroups` keeps among the groups of each tag; `tags`: one per group. */
export function selectGroupsByTag(scores: Float32Array, tags: readonly string[], options: GroupSelection): number[] {
  return [...membersByGroup(tags).values()].flatMap(members =>
    selectGroups(
      Float32Array.from(members, index => scores[index]),
      options,
    ).map(chosen => members[chosen]),
  );
}

/** A score whose absolute value is at most this number is treated as 0. */
export const zeroScore = 1e-10;

/**
 * Returns the indices of the groups to keep, best first (in batch order for min_p and for top_p ≥ 1); may be empty. NaN
 * scores are never selected, unless the filter is off (top_p ≥ 1 with zero scores included).
 */
export function selectGroups(scores: Float32Array, options: GroupSelection): number[] {
  const { rollout_filter_value: value, rollout_filter_strategy: strategy } = options;
  requireKnown(options);
  const all = Array.from(scores.keys());
  if (strategy === 'top_p' && value >= 1 && options.rollout_filter_include_zero) return all;
  const candidates = all.filter(
    group =>
      !Number.isNaN(scores[group]) && (options.rollout_filter_include_zero || Math.abs(scores[group]) > zeroScore),
  );
  if (candidates.length === 0) return [];
  switch (strategy) {
    case 'top_p':
      if (value >= 1) return candidates;
      return options.rollout_filter_top_p_prob_mode === 'linear'
        ? linearTopP(scores, candidates, options)
        : softmaxTopP(scores, candidates, options);
    case 'top_k':
      return best(scores, candidates, options, Math.trunc(value * scores.length));
    case 'top_k_abs':
      return best(scores, candidates, options, Math.trunc(value));
    case 'min_p':
      return minP(scores, candidates, options);
  }
}

/**
 * Throws a UserError for an unknown option value. The configuration's values are validated earlier, but values from
 * other callers are not.
 */
function requireKnown({
  rollout_filter_strategy: strategy,
  rollout_filter_type: type,
  rollout_filter_top_p_prob_mode: mode,
}: GroupSelection): void {
  const known: [string, string, readonly string[]][] = [
    ['strategy', strategy, filterStrategies],
    ['type', type, filterTypes],
  ];
  if (strategy === 'top_p') known.push(['top_p_prob_mode', mode, topPModes]);
  for (const [key, value, values] of known)
    if (!values.includes(value))
      throw new UserError(
        `config: actor_rollout_ref.rollout.rollout_filter_${key} is ${value}: use one of ${values.join(', ')}`,
      );
}

/**
 * Selects groups, best first, until the sum of their scores reaches the share `rollout_filter_value` of the sum of all
 * scores. Stops at the first score ≤ 0, so the result may be empty.
 */
function linearTopP(scores: Float32Array, candidates: number[], options: GroupSelection): number[] {
  const total = candidates.reduce((sum, group) => sum + scores[group], 0);
  const threshold = options.rollout_filter_value * total - options.rollout_filter_selection_eps;
  const taken: number[] = [];
  let mass = 0;
  for (const group of ranked(scores, candidates, options)) {
    if (mass >= threshold || scores[group] <= 0) break;
    mass += scores[group];
    taken.push(group);
  }
  return taken;
}

/**
 * Returns the smallest set of groups whose softmax probabilities sum to at least `rollout_filter_value`. The set has at
 * least one group.
 */
function softmaxTopP(scores: Float32Array, candidates: number[], options: GroupSelection): number[] {
  const order = ranked(scores, candidates, options);
  const sign = options.rollout_filter_type === 'largest' ? 1 : -1;
  const weights = order.map(group => Math.exp(sign * (scores[group] - scores[order[0]])));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let mass = 0;
  const last = weights.findIndex(weight => (mass += weight / total) >= options.rollout_filter_value);
  return last < 0 ? order : order.slice(0, last + 1);
}

function best(scores: Float32Array, candidates: number[], options: GroupSelection, wanted: number): number[] {
  return ranked(scores, candidates, options).slice(0, Math.max(Math.min(wanted, candidates.length), 1));
}

function minP(scores: Float32Array, candidates: number[], options: GroupSelection): number[] {
  const { rollout_filter_value: value, rollout_filter_type: type } = options;
  const values = candidates.map(group => scores[group]);
  if (type === 'largest') {
    const floor = value * maximum(values) - zeroScore;
    return candidates.filter(group => scores[group] >= floor);
  }
  const ceiling = minimum(values) / (value + zeroScore) + zeroScore;
  return candidates.filter(group => scores[group] <= ceiling);
}

function ranked(scores: Float32Array, candidates: number[], { rollout_filter_type }: GroupSelection): number[] {
  const sign = rollout_filter_type === 'largest' ? -1 : 1;
  return candidates.toSorted((a, b) => sign * (scores[a] - scores[b]) || a - b);
}
