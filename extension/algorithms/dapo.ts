// DAPO (Yu et al., 2025) beyond the asymmetric clip: dynamic sampling, which drops prompts whose rollouts all have the
// same score and samples replacements, and a soft penalty on responses close to the length limit. Option names follow
// verl (`algorithm.filter_groups`, `overlong_buffer_cfg`).
import { membersByGroup, momentsOf } from './group-statistics';

/** Ids of the kept and dropped prompt groups, each in batch order. */
export interface FilteredGroups {
  kept: number[];
  dropped: number[];
}

/** Keeps groups whose scores differ, and groups of one, which have no spread to test. */
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
  /** Groups the step trains on. */
  wanted: number;
  kept: number;
  sampled: number;
  rounds: number;
  /** Maximum number of rounds; 0 means no limit. */
  max_num_gen_batches: number;
}

/**
 * Returns the number of groups to sample next: as many as fill the batch at the current kept share, at most a whole
 * batch. Returns 0 when the batch is full or no rounds are left; the step then uses what it has.
 */
export function groupsToSample({ wanted, kept, sampled, rounds, max_num_gen_batches }: SamplingProgress): number {
  const missing = wanted - kept;
  if (missing <= 0 || (max_num_gen_batches > 0 && rounds >= max_num_gen_batches)) return 0;
  return sampled === 0 ? wanted : Math.min(wanted, Math.ceil((missing * sampled) / Math.max(kept, 1)));
}

export interface OverlongBuffer {
  /** Length in tokens of the zone before the limit in which the penalty grows. */
  len: number;
  /** Penalty at the limit. */
  penalty_factor: number;
}

/**
 * Returns the reward added to a response of `length` tokens: 0 where the buffer begins, falling linearly to
 * −penalty_factor at the limit.
 */
export function overlongReward(length: number, limit: number, { len, penalty_factor }: OverlongBuffer): number {
  const excess = length - (limit - len);
  if (excess <= 0) return 0;
  return -penalty_factor * (len > 0 ? Math.min(excess / len, 1) : 1);
}
