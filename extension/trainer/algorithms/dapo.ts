// What DAPO (Yu et al., 2025) adds to the clipped loss besides its asymmetric clip: dynamic sampling, which throws away prompts whose
// rollouts all scored alike and samples others in their place, and soft punishment of answers that come near the length limit.
// Names of options are verl's (`algorithm.filter_groups`, `overlong_buffer_cfg`).
import { membersByGroup, momentsOf } from './group-statistics';

/** Ids of the prompt groups that say something, and of those that don't, each in batch order. */
export interface SiftedGroups {
  kept: number[];
  dropped: number[];
}

/** Groups whose scores differ, and groups of one, which have nothing to be alike with, are kept. */
export function siftGroups(batch: { groups: ArrayLike<number>; scores: ArrayLike<number> }): SiftedGroups {
  const sifted: SiftedGroups = { kept: [], dropped: [] };
  for (const [group, samples] of membersByGroup(batch.groups)) {
    const alike = samples.length > 1 && momentsOf(batch.scores, samples).std === 0;
    sifted[alike ? 'dropped' : 'kept'].push(Number(group));
  }
  return sifted;
}

/** How far dynamic sampling of a step has come. Counts are of groups. */
export interface SamplingProgress {
  /** Groups that the step is to train on. */
  wanted: number;
  kept: number;
  sampled: number;
  rounds: number;
  /** Rounds at most; 0 for no limit. */
  max_num_gen_batches: number;
}

/**
 * Groups to sample next: as many as fill the batch if the share that is kept stays what it was, at most a whole batch. 0 when the
 * batch is full or no round is left, where the step goes on with what it has.
 */
export function groupsToSample({ wanted, kept, sampled, rounds, max_num_gen_batches }: SamplingProgress): number {
  const missing = wanted - kept;
  if (missing <= 0 || (max_num_gen_batches > 0 && rounds >= max_num_gen_batches)) return 0;
  return sampled === 0 ? wanted : Math.min(wanted, Math.ceil((missing * sampled) / Math.max(kept, 1)));
}

export interface OverlongBuffer {
  /** Tokens before the limit over which the punishment grows. */
  len: number;
  /** The punishment at the limit. */
  penalty_factor: number;
}

/** What is added to the reward of an answer of `length` tokens: from 0 where the buffer begins down to −penalty_factor at the limit. */
export function overlongReward(length: number, limit: number, { len, penalty_factor }: OverlongBuffer): number {
  const excess = length - (limit - len);
  if (excess <= 0) return 0;
  return -penalty_factor * (len > 0 ? Math.min(excess / len, 1) : 1);
}
