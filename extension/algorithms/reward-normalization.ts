// Normalises episode scores before they become token rewards (RAGEN's `agent_proxy.reward_normalization`). A score is
// the sum of an episode's turn rewards and its format penalty. The default is `identity`: GRPO and RLOO already compare
// scores within a group.
import { membersByGroup, momentsOf, type Moments } from './group-statistics';

export interface RewardNormalization {
  /**
   * Set of episodes whose scores are normalised with the same moments. `state`: all episodes of one prompt.
   * `inductive`: all episodes with the same environment tag. `batch`: all episodes.
   */
  grouping: 'state' | 'inductive' | 'batch';
  method: 'identity' | 'mean' | 'mean_std' | 'asym_clip';
}

/** Score, prompt group and environment tag of each episode. */
export interface ScoredEpisodes {
  scores: ArrayLike<number>;
  groups: ArrayLike<number>;
  tags: ArrayLike<string>;
}

/**
 * Returns normalised scores in float32, one per episode. If every group has only one episode, returns the scores
 * unchanged.
 */
export function normalizeRewards(episodes: ScoredEpisodes, { grouping, method }: RewardNormalization): Float32Array {
  const scores = Float32Array.from(episodes.scores);
  const keys: ArrayLike<number | string> =
    grouping === 'state' ? episodes.groups : grouping === 'inductive' ? episodes.tags : new Uint8Array(scores.length);
  const members = membersByGroup(keys);
  if (method === 'identity' || members.size === scores.length) return scores;
  const normalized = new Float32Array(scores.length);
  for (const indices of members.values()) {
    const moments = momentsOf(scores, indices);
    for (const index of indices) normalized[index] = normalizeOne(scores[index], moments, method);
  }
  return normalized;
}

function normalizeOne(score: number, { mean, std }: Moments, method: 'mean' | 'mean_std' | 'asym_clip'): number {
  if (method === 'mean') return score - mean;
  const z = std > 1e-6 ? (score - mean) / (std + 1e-6) : 0;
  return method === 'mean_std' ? z : Math.min(Math.max(z, -1), 3); // asymmetric: clips at −1 and 3
}
