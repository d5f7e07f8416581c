// Reference implementation of the policy loss in plain TypeScript: the loss of the chosen loss mode (built-in-losses.ts),
// minus the entropy bonus, plus the KL loss.
// `ragen algo` evaluates this implementation. In training, the graph operations in models/graphs/policy-loss-graph.ts compute the
// same loss. A test compares loss and gradient of the two implementations for every combination of options. The names of
// the modes are in policy-loss-options.ts.
import {
  covarianceOf,
  gateOf,
  largestLogRatio,
  lossModeOf,
  usesSequenceRatios,
  type PolicyLossSettings,
} from './policy-loss-options';
import { builtInLosses, type SequenceLosses } from './built-in-losses';
import { lossInput, type SampledSequence } from './covariance';
import { clamp, tokenKl, tokenKlSlope } from './kl';
import { aggregationWeights } from './loss-aggregation';

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

/** Returns the loss of every token of a mini-batch under its loss mode, also of tokens with mask 0. */
export const tokenLosses = (sequences: readonly SampledSequence[], settings: PolicyLossSettings): SequenceLosses[] =>
  builtInLosses[lossModeOf(settings)].loss(sequences.map(lossInput), {
    ...settings,
    ...gateOf(settings),
    ...covarianceOf(settings),
    seed: settings.selection_seed ?? 0,
  });

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
  losses: readonly SequenceLosses[] = tokenLosses(sequences, settings),
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
      const logRatio = sequence.logprobs[token] - sequence.old_logprobs[token];
      sums.pg_loss += weight * losses[row].loss[token];
      sums.pg_clipfrac += losses[row].clipped[token] ? share : 0;
      sums.pg_clipfrac_lower += losses[row].clippedLower[token] ? share : 0;
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
  losses: readonly SequenceLosses[] = tokenLosses(sequences, settings),
): Float64Array[] =>
  sequences.map((sequence, row) => {
    requireReference(sequence, row, settings);
    const { logprobs, ref_logprobs, mask } = sequence;
    return Float64Array.from(mask, (bit, token) => {
      if (!bit) return 0;
      const weight = weights[row][token];
      const surrogate = weight * losses[row].slope[token];
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
