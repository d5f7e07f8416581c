// GAE with TRICO's two masks (VAGEN): advantages are estimated over the tokens of the advantage mask alone, such as the reasoning and
// the action between their markers; the loss is taken over the loss mask. Value and advantage are carried over what lies between.
// A token of the loss mask that is not estimated has the advantage of the next one that is; after the last such token it is 0.
import { generalizedAdvantages, type AdvantagesAndReturns, type GaeOptions, type ValuedSequence } from './gae';
import { whitenTokens } from './token-sequences';

/** A sequence whose `mask` says which tokens are in the loss. */
export interface TwoMaskSequence extends ValuedSequence {
  /** 1 where the advantage is estimated and the critic is trained. */
  advantageMask: Uint8Array;
}

/** Advantages whitened over the estimated tokens of the batch, 0 outside the loss mask; returns at the estimated tokens, 0 elsewhere. */
export function maskedGaeAdvantages(sequences: readonly TwoMaskSequence[], options: GaeOptions): AdvantagesAndReturns {
  const masks = sequences.map(({ advantageMask }) => advantageMask);
  const advantages = sequences.map(({ rewards, values, advantageMask }) =>
    generalizedAdvantages({ rewards: rewardsWithin(rewards, advantageMask), values, mask: advantageMask }, options),
  );
  const returns = sequences.map(({ values, advantageMask }, row) =>
    values.map((value, token) => (advantageMask[token] ? advantages[row][token] + value : 0)),
  );
  whitenTokens(advantages, masks);
  sequences.forEach(({ mask, advantageMask }, row) => {
    let carried = 0;
    for (let token = mask.length - 1; token >= 0; token--) {
      if (advantageMask[token]) carried = advantages[row][token];
      advantages[row][token] = mask[token] ? carried : 0;
    }
  });
  return { advantages, returns };
}

/** Rewards that fall between estimated tokens, such as one on the end of a turn, are paid on the last of them before. */
function rewardsWithin(rewards: Float32Array, mask: Uint8Array): Float32Array {
  const moved = new Float32Array(rewards.length);
  let last = -1;
  rewards.forEach((reward, token) => {
    if (mask[token]) last = token;
    if (last >= 0) moved[last] += reward;
  });
  return moved;
}
