// Two parts of DAPO (Yu et al., 2025). Dynamic sampling drops prompts whose rollouts all have the same score, and
// samples other prompts instead. A soft penalty applies to responses close to the length limit. DAPO's asymmetric clip
// is in clipped-surrogate.ts. Option names follow verl (`algorithm.filter_groups`, `overlong_buffer_cfg`).
import { membersByGroup, momentsOf } from './group-statistics';

/** Ids of the kept and dropped prompt groups, each in batch order. */
export interface FilteredGroups {
  kept: number[];
  dropped: number[];
}

/**
 * Keeps the groups whose scores differ. Also keeps every group with a single sample, because a single score cannot
 * differ.
 */
export function filterGroups(batch: { groups: ArrayLike<number>; scores: ArrayLike<number> }): FilteredGroups {
  const filtered: FilteredGroups = { kept: [], dropped: [] };
  for (const [group, samples] of membersByGroup(batch.groups)) {
    const alike = samples.length > 1 && momentsOf(batch.scores, samples).std === 0;
    filtered[alike ? 'dropped' : 'kept'].push(Number(group));
  }
  return filtered;
}

/** Progress of dynamic sampling within a step. Counts are in groups. */
export interface SamplingProgress {
  /** Number of groups that the step trains on. */
  wanted: number;
  kept: number;
  sampled: number;
  rounds: number;
  /** Maximum number of rounds; 0 means no limit. */
  max_num_gen_batches: number;
}

/**
 * Returns the number of groups to sample next: the number of missing groups divided by the fraction of the sampled
 * groups that were kept, but at most `wanted`. Returns 0 when the batch is full or no rounds are left; the step then
 * trains on the groups kept so far.
 */
export function groupsToSample({ wanted, kept, sampled, rounds, max_num_gen_batches }: SamplingProgress): number {
  const missing = wanted - kept;
  if (missing <= 0 || (max_num_gen_batches > 0 && rounds >= max_num_gen_batches)) return 0;
  return sampled === 0 ? wanted : Math.min(wanted, Math.ceil((missing * sampled) / Math.max(kept, 1)));
}

export interface OverlongBuffer {
  /**
   * Length of the buffer in tokens. The buffer is the zone before the length limit; in this zone, the penalty grows.
   */
  len: number;
  /** Absolute value of the penalty at the length limit. */
  penalty_factor: number;
}

/**
 * Returns the reward to add for a response of `length` tokens. It is 0 up to the start of the buffer and then falls
 * linearly to −penalty_factor at the limit.
 */
export function overlongReward(length: number, limit: number, { len, penalty_factor }: OverlongBuffer): number {
  const excess = length - (limit - len);
  if (excess <= 0) return 0;
  return -penalty_factor * (len > 0 ? Math.min(excess / len, 1) : 1);
}
