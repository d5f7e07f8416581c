// Reference implementation of the policy loss in plain TypeScript: the loss of the chosen loss mode, minus the entropy
// bonus, plus the KL loss. The modes are PPO's clipped surrogate (Schulman et al., 2017), GSPO, CISPO, SAPO, GMPO, Clip-Cov and
// KL-Cov.
// The clipping of the surrogate may be asymmetric (DAPO, Yu et al., 2025) and includes the dual clip (Ye et al., 2020).
// `ragen algo` evaluates this implementation. In training, the graph operations in models/graphs/policy-loss-graph.ts compute the
// same loss. A test compares loss and gradient of the two implementations for every combination of options. The names of
// the modes are in policy-loss-options.ts.
import {
  covarianceOf,
  largestLogRatio,
  gateOf,
  lossModeOf,
  usesSequenceRatios,
  type PolicyLossSettings,
} from './policy-loss-options';
import { cispoTokenLoss } from './cispo';
import { tokenPolicyLoss, type TokenLoss } from './clipped-surrogate';
import { clipCovTokenLoss, klCovTokenLoss, selectedTokens, type SampledSequence } from './covariance';
import { clippedSequenceLogRatio, gmpoTokenLoss } from './gmpo';
import { gspoTokenLoss, sequenceLogRatio } from './gspo';
import { clamp, tokenKl, tokenKlSlope } from './kl';
import { aggregationWeights } from './loss-aggregation';
import { sapoTokenLoss } from './sapo';

/** A sequence with what the entropy bonus and the KL loss need. */
export interface PolicySequence extends SampledSequence {
  /** Entropy of the policy's distribution at each token; required when `entropy_coeff` is not 0 (else an Error). */
  entropies?: ArrayLike<number>;
  /** Required when `use_kl_loss` is on (else an Error). */
  ref_logprobs?: ArrayLike<number>;
}

/** The loss, its terms and metrics, under verl's names. */
export interface PolicyLoss {
  loss: number;
  pg_loss: number;
  entropy: number;
  kl_loss: number;
  /** Share of sampled tokens whose clipped loss exceeded the unclipped loss. */
  pg_clipfrac: number;
  /** Share of sampled tokens bounded by the dual clip. */
  pg_clipfrac_lower: number;
  /** Mean of log π_old − log π over the sampled tokens, in nats. */
  ppo_kl: number;
}

/**
 * Returns the loss of every token of a mini-batch under its loss mode, one array per sequence. A token with mask 0 has a
 * loss too, but is left out of the sequence ratios of GSPO and GMPO and of the selection of Clip-Cov and KL-Cov.
 */
export function tokenLosses(sequences: readonly SampledSequence[], settings: PolicyLossSettings): TokenLoss[][] {
  const selected = selectedTokens(sequences, settings);
  return sequences.map((sequence, row) => sequenceTokenLosses(sequence, settings, selected?.[row]));
}

function sequenceTokenLosses(
  { logprobs, old_logprobs, advantages, mask }: SampledSequence,
  settings: PolicyLossSettings,
  selected: Uint8Array | undefined,
): TokenLoss[] {
  const mode = lossModeOf(settings);
  const logRatios = Float64Array.from(logprobs, (logprob, token) => logprob - old_logprobs[token]);
  const ofSequence =
    mode === 'geo_mean'
      ? clippedSequenceLogRatio(logRatios, advantages, mask, settings)
      : sequenceLogRatio(logprobs, old_logprobs, mask);
  return Array.from(logprobs, (logprob, token) => {
    const [logRatio, advantage, isSelected] = [logRatios[token], advantages[token], selected?.[token] === 1];
    switch (mode) {
      case 'vanilla':
        return tokenPolicyLoss(logRatio, advantage, settings);
      case 'gspo':
        return gspoTokenLoss(ofSequence, advantage, settings);
      case 'cispo':
        return cispoTokenLoss(logprob, logRatio, advantage, settings);
      case 'sapo':
        return sapoTokenLoss(logRatio, advantage, gateOf(settings));
      case 'geo_mean':
        return gmpoTokenLoss(logRatio, ofSequence, advantage, settings);
      case 'clip_cov':
        return clipCovTokenLoss(logRatio, advantage, isSelected, settings);
      case 'kl_cov':
        return klCovTokenLoss(logRatio, advantage, isSelected, covarianceOf(settings).ppo_kl_coef);
    }
  });
}

/**
 * Returns the loss of a mini-batch. `paddedLength` as in `aggregationWeights`; defaults to the length of the longest
 * sequence.
 */
export const policyLoss = (
  sequences: readonly PolicySequence[],
  settings: PolicyLossSettings,
  paddedLength = longest(sequences),
): PolicyLoss => weightedPolicyLoss(sequences, tokenWeights(sequences, settings, paddedLength), settings);

/**
 * Does the same as `policyLoss`, but with given token weights. `weights` and `losses` contain one array per sequence. A
 * caller that has already computed the token losses passes `losses`.
 */
export function weightedPolicyLoss(
  sequences: readonly PolicySequence[],
  weights: readonly ArrayLike<number>[],
  settings: PolicyLossSettings,
  losses: readonly TokenLoss[][] = tokenLosses(sequences, settings),
): PolicyLoss {
  const mode = lossModeOf(settings);
  const sums: PolicyLoss = {
    loss: 0,
    pg_loss: 0,
    entropy: 0,
    kl_loss: 0,
    pg_clipfrac: 0,
    pg_clipfrac_lower: 0,
    ppo_kl: 0,
  };
  const share = 1 / (sequences.reduce((sum, sequence) => sum + sampledTokens(sequence), 0) + 1e-8);
  sequences.forEach((sequence, row) => {
    if (settings.entropy_coeff !== 0 && !sequence.entropies)
      throw new Error(`policy loss: entropy_coeff is ${settings.entropy_coeff} but sequence ${row} has no entropies`);
    requireReference(sequence, row, settings);
    sequence.mask.forEach((bit, token) => {
      if (!bit) return;
      const weight = weights[row][token];
      const surrogate = losses[row][token];
      const logRatio = sequence.logprobs[token] - sequence.old_logprobs[token];
      sums.pg_loss += weight * surrogate.loss;
      sums.pg_clipfrac += surrogate.clipped ? share : 0;
      sums.pg_clipfrac_lower += surrogate.clippedLower ? share : 0;
      sums.ppo_kl -= share * (usesSequenceRatios(mode) ? logRatio : clamp(logRatio, -largestLogRatio, largestLogRatio));
      if (sequence.entropies) sums.entropy += weight * sequence.entropies[token];
      if (settings.use_kl_loss && sequence.ref_logprobs)
        sums.kl_loss +=
          weight * tokenKl(settings.kl_loss_type, sequence.logprobs[token] - sequence.ref_logprobs[token]);
    });
  });
  sums.loss = sums.pg_loss - settings.entropy_coeff * sums.entropy + settings.kl_loss_coef * sums.kl_loss;
  return sums;
}

/**
 * Returns dL/dlog π of every token of a mini-batch, where L is the loss without the entropy bonus; 0 where mask = 0.
 * Terms that a loss mode holds constant (the sequence ratios of GSPO and GMPO, CISPO's weight) are constant here. The
 * entropy bonus is left out because it depends on complete distributions. The derivative of the whole loss with respect to a token's
 * entropy is −entropy_coeff times the token's weight. `paddedLength` as in `policyLoss`.
 */
export const policyLossGradient = (
  sequences: readonly PolicySequence[],
  settings: PolicyLossSettings,
  paddedLength = longest(sequences),
): Float64Array[] => weightedPolicyLossGradient(sequences, tokenWeights(sequences, settings, paddedLength), settings);

/**
 * Does the same as `policyLossGradient`, but with given token weights. `weights` and `losses` contain one array per
 * sequence. A caller that has already computed the token losses passes `losses`.
 */
export const weightedPolicyLossGradient = (
  sequences: readonly PolicySequence[],
  weights: readonly ArrayLike<number>[],
  settings: PolicyLossSettings,
  losses: readonly TokenLoss[][] = tokenLosses(sequences, settings),
): Float64Array[] =>
  sequences.map((sequence, row) => {
    requireReference(sequence, row, settings);
    const { logprobs, ref_logprobs, mask } = sequence;
    return Float64Array.from(mask, (bit, token) => {
      if (!bit) return 0;
      const weight = weights[row][token];
      const surrogate = weight * losses[row][token].slope;
      if (!settings.use_kl_loss || !ref_logprobs) return surrogate;
      const slope = tokenKlSlope(settings.kl_loss_type, logprobs[token] - ref_logprobs[token]);
      return surrogate + settings.kl_loss_coef * weight * slope;
    });
  });

/** Returns the weights that `loss_agg_mode` gives to the tokens, one array per sequence. */
function tokenWeights(
  sequences: readonly PolicySequence[],
  { loss_agg_mode }: PolicyLossSettings,
  paddedLength: number,
): Float64Array[] {
  const shares = aggregationWeights(sequences.map(sampledTokens), loss_agg_mode, paddedLength);
  return sequences.map(({ mask }, row) => new Float64Array(mask.length).fill(shares[row]));
}

const sampledTokens = ({ mask }: Pick<PolicySequence, 'mask'>): number => mask.reduce((sum, bit) => sum + bit, 0);

const longest = (sequences: readonly PolicySequence[]): number =>
  sequences.reduce((most, { mask }) => Math.max(most, mask.length), 0);

function requireReference({ ref_logprobs }: PolicySequence, row: number, { use_kl_loss }: PolicyLossSettings): void {
  if (use_kl_loss && !ref_logprobs)
    throw new Error(`policy loss: use_kl_loss is on but sequence ${row} has no ref_logprobs`);
}
