// The interface of policy losses of the workspace. A file whose default export is created by `defineLoss` is named by
// `actor_rollout_ref.actor.policy_loss.loss_mode`. A loss is given by its value and its derivative (slope) per token, as
// the built-in losses are in extension/algorithms (`TokenLoss`); the trainer applies exactly this gradient. Aggregation
// (`loss_agg_mode`), KL loss and entropy bonus are added as for built-in losses. Invariant: `loss` is a function of its
// arguments.

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

export interface LossSettings {
  clip_ratio_low: number;
  clip_ratio_high: number;
  clip_ratio_c: number;
  /** Number of the step, from 1. */
  step: number;
  /** Seed for random numbers; it differs between mini-batches. */
  seed: number;
}

/** Finite numbers per token: the loss, and its derivative with respect to the log-prob of the token. */
export interface TokenLosses {
  loss: ArrayLike<number>;
  slope: ArrayLike<number>;
}

/** The default export of a loss's file. */
export interface LossPlugin {
  readonly kind: 'loss';
  /** Name in messages. */
  name: string;
  /** Returns the loss of each sequence of a mini-batch. */
  loss(sequences: readonly LossSequence[], settings: LossSettings): readonly TokenLosses[];
}

/** Declares a policy loss. */
export function defineLoss(definition: Omit<LossPlugin, 'kind'>): LossPlugin {
  return { kind: 'loss', ...definition };
}
