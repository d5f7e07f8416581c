// ReMax (Li et al., 2024, arXiv 2310.10505) as in verl's compute_remax_outcome_advantage: REINFORCE whose baseline is
// the score of a greedy rollout of the same prompt. ReMax needs no critic and no group statistics.
import { discountedReturns } from './reinforce';
import type { RewardSequence } from './reinforce';

/**
 * Returns one advantage per token: the undiscounted return from this token on, minus the sample's baseline; 0 at
 * unsampled tokens.
 * @param baselines score of the greedy rollout of each sequence's prompt, one per sequence
 */
export function remaxAdvantages(sequences: readonly RewardSequence[], baselines: ArrayLike<number>): Float32Array[] {
  return sequences.map((sequence, row) =>
    discountedReturns(sequence, 1).map((earned, token) => (sequence.mask[token] ? earned - baselines[row] : 0)),
  );
}
