// REINFORCE++ (Hu, 2025) and its group-baseline form: no critic, variance held down by whitening over the batch.
// Observation tokens between turns are stepped over: the return runs on through them undiscounted, so that an early turn is
// credited with what a later one earns.
import { forEachGroup, type GroupedScores } from './group-statistics';
import { spreadOverTokens, whitenTokens } from './token-sequences';

/** Rewards and mask of one sequence, of equal length. */
export interface RewardSequence {
  rewards: Float32Array;
  mask: Uint8Array;
}

/** One advantage a token: the discounted return from that token on, whitened over all sampled tokens of the batch. */
export function reinforcePlusPlusAdvantages(sequences: readonly RewardSequence[], gamma: number): Float32Array[] {
  const returns = sequences.map(sequence => discountedReturns(sequence, gamma));
  whitenTokens(
    returns,
    sequences.map(sequence => sequence.mask),
  );
  return returns;
}

/** One advantage a token: the sample's score minus its group's mean, whitened over all sampled tokens of the batch. */
export function reinforcePlusPlusBaselineAdvantages(
  batch: GroupedScores,
  masks: readonly Uint8Array[],
): Float32Array[] {
  const advantages = spreadOverTokens(centredScores(batch), masks);
  whitenTokens(advantages, masks);
  return advantages;
}

/** Each sample's score minus its group's mean; a group of one keeps its raw score. */
export function centredScores(batch: GroupedScores): Float64Array {
  const centred = new Float64Array(batch.scores.length);
  forEachGroup(batch, (samples, { count, mean }) => {
    for (const sample of samples) centred[sample] = batch.scores[sample] - (count > 1 ? mean : 0);
  });
  return centred;
}

/**
 * Return from each sampled token on; 0 at other tokens. `reset` begins anew at every gap, as verl does, so that only the last turn sees
 * a reward at the end.
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
