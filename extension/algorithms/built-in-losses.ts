// The built-in policy losses by mode, in the interface that plug-ins implement (envs/api/plugins/loss.ts). The formulas are
// in the files of the losses. This is the reference implementation; `ragen algo` and engines without their own gradients
// evaluate it. The training graph (models/graphs/policy-loss-graph.ts) is the compiled form of the same formulas, and a
// test compares the two for every mode, also through the gradient that the trainer applies for plug-ins.
import type { Loss, LossSettings } from '../../envs/api/plugins/loss';
import { cispoTokenLoss } from './cispo';
import { tokenPolicyLoss, type TokenLoss } from './clipped-surrogate';
import { clipCovTokenLoss, clipCovTokens, klCovTokenLoss, klCovTokens, type LossInput } from './covariance';
import { clippedSequenceLogRatio, gmpoTokenLoss } from './gmpo';
import { gspoTokenLoss, sequenceLogRatio } from './gspo';
import type { LossMode } from './policy-loss-options';
import { sapoTokenLoss } from './sapo';

/** The losses of one sequence, one entry per token. */
export interface SequenceLosses {
  loss: Float64Array;
  slope: Float64Array;
  clipped: Uint8Array;
  clippedLower: Uint8Array;
}

/** No built-in loss depends on the number of the step. */
export type BuiltInLossSettings = Omit<LossSettings, 'step'>;

interface BuiltInLoss extends Loss {
  /**
   * Returns the loss of every token. A token with mask 0 has a loss too, but is left out of the sequence ratios of GSPO
   * and GMPO and of the selection of Clip-Cov and KL-Cov.
   */
  loss(sequences: readonly LossInput[], settings: BuiltInLossSettings): SequenceLosses[];
}

/** A token, with what its loss reads from the whole sequence or mini-batch. */
interface LossToken {
  logprob: number;
  logRatio: number;
  advantage: number;
  /** The value of `ofSequence`. */
  ofSequence: number;
  isSelected: boolean;
}

/** Returns the loss of sequences from the loss of a token. */
const tokenwise = (
  tokenLoss: (token: LossToken, settings: BuiltInLossSettings) => TokenLoss,
  {
    ofSequence,
    selected,
  }: {
    ofSequence?: (sequence: LossInput, settings: BuiltInLossSettings) => number;
    selected?: (sequences: readonly LossInput[], settings: BuiltInLossSettings) => Uint8Array[];
  } = {},
): BuiltInLoss => ({
  loss: (sequences, settings) => {
    const marks = selected?.(sequences, settings);
    return sequences.map((sequence, row) => {
      const { logprobs, old, advantages } = sequence;
      const shared = ofSequence?.(sequence, settings) ?? 0;
      const tokens = Array.from(logprobs, (logprob, token) =>
        tokenLoss(
          {
            ...{ logprob, logRatio: logprob - old[token], advantage: advantages[token], ofSequence: shared },
            isSelected: marks?.[row][token] === 1,
          },
          settings,
        ),
      );
      return {
        loss: Float64Array.from(tokens, ({ loss }) => loss),
        slope: Float64Array.from(tokens, ({ slope }) => slope),
        clipped: Uint8Array.from(tokens, ({ clipped }) => Number(clipped)),
        clippedLower: Uint8Array.from(tokens, ({ clippedLower }) => Number(clippedLower)),
      };
    });
  },
});

export const builtInLosses: Readonly<Record<LossMode, BuiltInLoss>> = {
  vanilla: tokenwise(({ logRatio, advantage }, settings) => tokenPolicyLoss(logRatio, advantage, settings)),
  gspo: tokenwise(({ ofSequence, advantage }, settings) => gspoTokenLoss(ofSequence, advantage, settings), {
    ofSequence: ({ logprobs, old, mask }) => sequenceLogRatio(logprobs, old, mask),
  }),
  cispo: tokenwise(({ logprob, logRatio, advantage }, settings) =>
    cispoTokenLoss(logprob, logRatio, advantage, settings),
  ),
  sapo: tokenwise(({ logRatio, advantage }, settings) => sapoTokenLoss(logRatio, advantage, settings)),
  geo_mean: tokenwise(
    ({ logRatio, ofSequence, advantage }, settings) => gmpoTokenLoss(logRatio, ofSequence, advantage, settings),
    {
      ofSequence: ({ logprobs, old, advantages, mask }, settings) => {
        const logRatios = Float64Array.from(logprobs, (logprob, token) => logprob - old[token]);
        return clippedSequenceLogRatio(logRatios, advantages, mask, settings);
      },
    },
  ),
  clip_cov: tokenwise(
    ({ logRatio, advantage, isSelected }, settings) => clipCovTokenLoss(logRatio, advantage, isSelected, settings),
    { selected: clipCovTokens },
  ),
  kl_cov: tokenwise(
    ({ logRatio, advantage, isSelected }, { ppo_kl_coef }) =>
      klCovTokenLoss(logRatio, advantage, isSelected, ppo_kl_coef),
    { selected: klCovTokens },
  ),
};
