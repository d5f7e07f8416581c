// GAE with TRICO's two masks (VAGEN). Advantages are estimated only over the tokens of the advantage mask, for example
// the reasoning and the action without their tags. The loss covers the tokens of the loss mask. Value and advantage are
// carried unchanged across tokens outside the advantage mask. If a token is only in the loss mask, it has the advantage
// of the next token in the advantage mask, or 0 if no such token follows.
import { generalizedAdvantages, type AdvantagesAndReturns, type GaeOptions, type ValuedSequence } from './gae';
import { whitenTokens } from './token-sequences';

/** A sequence whose `mask` is the loss mask. */
export interface TwoMaskSequence extends ValuedSequence {
  /** 1 for tokens whose advantage is estimated and on which the critic is trained. */
  advantageMask: Uint8Array;
}

/**
 * Returns the advantages and the critic's returns. The advantages are whitened over the batch's tokens in the advantage
 * mask, and are 0 outside the loss mask. The returns are 0 outside the advantage mask.
 */
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

/**
 * Moves each reward at a token outside the advantage mask, such as a turn end, to the nearest preceding token in the
 * advantage mask.
 */
function rewardsWithin(rewards: Float32Array, mask: Uint8Array): Float32Array {
  const moved = new Float32Array(rewards.length);
  let last = -1;
  rewards.forEach((reward, token) => {
    if (mask[token]) last = token;
    if (last >= 0) moved[last] += reward;
  });
  return moved;
}
