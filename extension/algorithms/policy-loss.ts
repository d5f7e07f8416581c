// The policy loss in plain TypeScript: PPO's clipped surrogate (Schulman et al., 2017) with asymmetric clipping (DAPO,
// Yu et al., 2025) and dual clip (Ye et al., 2020), or the GSPO or CISPO loss, minus the entropy bonus, plus the KL
// loss. The training graph computes the same; tests compare the graph against this readable form.
import { cispoTokenLoss } from './cispo';
import { tokenPolicyLoss, type ClipOptions, type TokenLoss } from './clipped-surrogate';
import { gspoTokenLoss, sequenceLogRatio } from './gspo';
import { clamp, tokenKl, type KlKind } from './kl';
import { aggregationWeights, type LossAggMode } from './loss-aggregation';

/** One sequence; all arrays have its length and are read where mask = 1. Log-probs in nats. */
export interface PolicySequence {
  logprobs: Float32Array;
  old_logprobs: Float32Array;
  advantages: Float32Array;
  mask: Uint8Array;
  /** Entropy of the policy's distribution at each token; required when `entropy_coeff` is not 0 (else an Error). */
  entropies?: Float32Array;
  /** Required when `use_kl_loss` is on (else an Error). */
  ref_logprobs?: Float32Array;
}

/** verl's `actor_rollout_ref.actor.policy_loss.loss_mode`: the token-level clipped surrogate, GSPO or CISPO. */
export type LossMode = 'vanilla' | 'gspo' | 'cispo';

export interface PolicyLossSettings extends ClipOptions {
  /** Defaults to the clipped surrogate. */
  policy_loss?: { loss_mode: LossMode };
  entropy_coeff: number;
  use_kl_loss: boolean;
  kl_loss_coef: number;
  kl_loss_type: KlKind;
  loss_agg_mode: LossAggMode;
}

/** The loss, its terms and metrics, under verl's names. */
export interface PolicyLoss {
  loss: number;
  pg_loss: number;
  entropy: number;
  kl_loss: number;
  /** Share of sampled tokens whose clipped loss was the larger. */
  pg_clipfrac: number;
  /** Share of sampled tokens bounded by the dual clip. */
  pg_clipfrac_lower: number;
  /** Mean of old − new log-prob. */
  ppo_kl: number;
}

/**
 * Returns the loss of every token of a sequence under the loss mode. Tokens with mask 0 get a loss too, but are
 * excluded from GSPO's sequence ratio.
 */
export function tokenLosses(
  sequence: Pick<PolicySequence, 'logprobs' | 'old_logprobs' | 'advantages' | 'mask'>,
  clip: ClipOptions,
  mode: LossMode = 'vanilla',
): TokenLoss[] {
  const { logprobs, old_logprobs, advantages, mask } = sequence;
  const ofSequence = sequenceLogRatio(logprobs, old_logprobs, mask);
  return Array.from(logprobs, (logprob, token) => {
    const logRatio = logprob - old_logprobs[token];
    switch (mode) {
      case 'vanilla':
        return tokenPolicyLoss(logRatio, advantages[token], clip);
      case 'gspo':
        return gspoTokenLoss(ofSequence, advantages[token], clip);
      case 'cispo':
        return cispoTokenLoss(logprob, logRatio, advantages[token], clip);
    }
  });
}

/**
 * Returns the loss of a mini-batch. `paddedLength` as in `aggregationWeights`; defaults to the length of the longest
 * sequence.
 */
export function policyLoss(
  sequences: readonly PolicySequence[],
  settings: PolicyLossSettings,
  paddedLength = sequences.reduce((longest, { mask }) => Math.max(longest, mask.length), 0),
): PolicyLoss {
  const lengths = sequences.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
  const mode = settings.policy_loss?.loss_mode ?? 'vanilla';
  const weights = aggregationWeights(lengths, settings.loss_agg_mode, paddedLength);
  const sums: PolicyLoss = {
    loss: 0,
    pg_loss: 0,
    entropy: 0,
    kl_loss: 0,
    pg_clipfrac: 0,
    pg_clipfrac_lower: 0,
    ppo_kl: 0,
  };
  const share = 1 / (lengths.reduce((sum, length) => sum + length, 0) + 1e-8);
  sequences.forEach((sequence, row) => {
    if (settings.entropy_coeff !== 0 && !sequence.entropies)
      throw new Error(`policy loss: entropy_coeff is ${settings.entropy_coeff} but sequence ${row} has no entropies`);
    if (settings.use_kl_loss && !sequence.ref_logprobs)
      throw new Error(`policy loss: use_kl_loss is on but sequence ${row} has no ref_logprobs`);
    const losses = tokenLosses(sequence, settings, mode);
    sequence.mask.forEach((bit, token) => {
      if (!bit) return;
      const surrogate = losses[token];
      const logRatio = sequence.logprobs[token] - sequence.old_logprobs[token];
      sums.pg_loss += weights[row] * surrogate.loss;
      sums.pg_clipfrac += surrogate.clipped ? share : 0;
      sums.pg_clipfrac_lower += surrogate.clippedLower ? share : 0;
      sums.ppo_kl -= share * (mode === 'gspo' ? logRatio : clamp(logRatio, -20, 20));
      if (sequence.entropies) sums.entropy += weights[row] * sequence.entropies[token];
      if (settings.use_kl_loss && sequence.ref_logprobs)
        sums.kl_loss +=
          weights[row] * tokenKl(settings.kl_loss_type, sequence.logprobs[token] - sequence.ref_logprobs[token]);
    });
  });
  sums.loss = sums.pg_loss - settings.entropy_coeff * sums.entropy + settings.kl_loss_coef * sums.kl_loss;
  return sums;
}
