// The interface of policy losses. The built-in losses (extension/algorithms/built-in-losses.ts) implement it, and so does a
// plug-in: a file whose default export is created by `defineLoss` and that `actor_rollout_ref.actor.policy_loss.loss_mode`
// names. A loss is given by its value and its derivative (slope) per token; the trainer applies exactly this gradient.
// Aggregation (`loss_agg_mode`), KL loss and entropy bonus are the same for all losses. Invariant: `loss` is a function of
// its arguments.

/** One sequence of a mini-batch. Arrays have one entry per token; only entries with mask 1 have a meaning. */
export interface LossSequence {
  /** Log-probs of the tokens under the policy at this optimizer step, in nats. */
  logprobs: Float32Array;
  /** Log-probs under the policy before the update of the step. */
  old: Float32Array;
  advantages: Float32Array;
  /** 1 at the tokens on which the policy is trained. */
  mask: Uint8Array;
}

/** Settings of `actor_rollout_ref.actor` and its `policy_loss`, and the seed of the mini-batch. */
export interface LossSettings {
  clip_ratio_low: number;
  clip_ratio_high: number;
  clip_ratio_c: number;
  tau_pos: number;
  tau_neg: number;
  clip_cov_ratio: number;
  clip_cov_lb: number;
  clip_cov_ub: number;
  kl_cov_ratio: number;
  ppo_kl_coef: number;
  /** Number of the step, from 1. */
  step: number;
  /** Seed for random numbers; it differs between mini-batches. */
  seed: number;
}

/** Finite numbers per token: the loss, and its derivative with respect to the log-prob of the token. */
export interface TokenLosses {
  loss: ArrayLike<number>;
  slope: ArrayLike<number>;
  /** 1 at tokens at which a clip bound took effect, else 0; the metric `actor/pg_clipfrac`. By default all 0. */
  clipped?: ArrayLike<number>;
  /** 1 at tokens that a second bound for negative advantages limits; the metric `actor/pg_clipfrac_lower`. */
  clippedLower?: ArrayLike<number>;
}

/** A policy loss. */
export interface Loss {
  /** Returns the loss of each sequence of a mini-batch. */
  loss(sequences: readonly LossSequence[], settings: LossSettings): readonly TokenLosses[];
}

/** The default export of a loss's file. */
export interface LossPlugin extends Loss {
  readonly kind: 'loss';
  /** Name in messages. */
  name: string;
}

/** Declares a policy loss. */
export function defineLoss(definition: Omit<LossPlugin, 'kind'>): LossPlugin {
  return { kind: 'loss', ...definition };
}
