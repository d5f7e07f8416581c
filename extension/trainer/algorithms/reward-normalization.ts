// Normalisation of episode scores before they become token rewards (RAGEN's `agent_proxy.reward_normalization`).
// Scores are Σ turn rewards + format penalty, one an episode. Off (`identity`) by default; estimators that compare inside a
// group (GRPO, RLOO) do their own.
import { membersByGroup, momentsOf, type Moments } from './group-statistics';

export interface RewardNormalization {
  /** Which episodes are normalised together: those of one prompt, of one environment tag, or all. */
  grouping: 'state' | 'inductive' | 'batch';
  method: 'identity' | 'mean' | 'mean_std' | 'asym_clip';
}

/** Scores with the prompt group and the environment tag of each episode. */
export interface ScoredEpisodes {
  scores: ArrayLike<number>;
  groups: ArrayLike<number>;
  tags: ArrayLike<string>;
}

/**
 * Normalised scores, one an episode, in float32 as the rest of the pipeline.
 * When every episode is a group of its own there is nothing to normalise by and the scores come back unchanged.
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
  return method === 'mean_std' ? z : Math.min(Math.max(z, -1), 3); // the bad tail is cut earlier than the good one
}
