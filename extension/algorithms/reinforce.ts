// REINFORCE++ (Hu, 2025) and its variant with a group baseline. Neither uses a critic; whitening over the batch reduces
// the variance. Observation tokens between turns do not change the return, so earlier turns are credited with later
// rewards.
import { forEachGroup, type GroupedScores } from './group-statistics';
import { spreadOverTokens, whitenTokens } from './token-sequences';

/** Rewards and mask of one sequence, of equal length. */
export interface RewardSequence {
  rewards: Float32Array;
  mask: Uint8Array;
}

/**
 * Returns one advantage per token: the discounted return from this token on, whitened over all sampled tokens of the
 * batch.
 */
export function reinforcePlusPlusAdvantages(sequences: readonly RewardSequence[], gamma: number): Float32Array[] {
  const returns = sequences.map(sequence => discountedReturns(sequence, gamma));
  whitenTokens(
    returns,
    sequences.map(sequence => sequence.mask),
  );
  return returns;
}

/**
 * Returns one advantage per token: the sample's score minus its group's mean, whitened over all sampled tokens of the
 * batch.
 */
export function reinforcePlusPlusBaselineAdvantages(
  batch: GroupedScores,
  masks: readonly Uint8Array[],
): Float32Array[] {
  const advantages = spreadOverTokens(centredScores(batch), masks);
  whitenTokens(advantages, masks);
  return advantages;
}

/** Returns each sample's score minus its group's mean; a sample that is alone in its group keeps its raw score. */
export function centredScores(batch: GroupedScores): Float64Array {
  const centred = new Float64Array(batch.scores.length);
  forEachGroup(batch, (samples, { count, mean }) => {
    for (const sample of samples) centred[sample] = batch.scores[sample] - (count > 1 ? mean : 0);
  });
  return centred;
}

/**
 * Returns the discounted return from each sampled token on; 0 at other tokens. With `reset`, the return starts at 0 in
 * every block of sampled tokens, as in verl. A reward at the end of the episode then affects only the last turn.
 */
export function discountedReturns(
  { rewards, mask }: RewardSequence,
  gamma: number,
  gaps: 'carry' | 'reset' = 'carry',
): Float32Array {
  const returns = new Float32Array(rewards.length);
  let running = 0;
  for (let token = rewards.length - 1; token >= 0; token--) {
    if (!mask[token]) {
      if (gaps === 'reset') running = 0;
      continue;
    }
    running = rewards[token] + gamma * running;
    returns[token] = running;
  }
  return returns;
}
