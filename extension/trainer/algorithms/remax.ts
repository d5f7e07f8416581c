// ReMax (Li et al., 2024, arXiv 2310.10505), as verl's compute_remax_outcome_advantage has it: REINFORCE with the score of a greedy rollout
// of the same prompt for a baseline. No critic, and no comparison inside the group.
import { discountedReturns } from './reinforce';
import type { RewardSequence } from './reinforce';

/**
 * One advantage a token: the undiscounted return from that token on, less the sample's baseline; 0 at tokens that were not sampled.
 * @param baselines one a sequence: the score of the greedy rollout of its prompt
 */
export function remaxAdvantages(sequences: readonly RewardSequence[], baselines: ArrayLike<number>): Float32Array[] {
  return sequences.map((sequence, row) =>
    discountedReturns(sequence, 1).map((earned, token) => (sequence.mask[token] ? earned - baselines[row] : 0)),
  );
}
