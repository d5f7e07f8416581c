// Names, options and bounds of the policy loss, shared by the configuration's schema, the engine, `ragen algo` and both
// forms of the loss: its definition (policy-loss.ts) and the graph operations that train
// (models/graphs/policy-loss-graph.ts). Names follow verl.

/** The token-level clipped surrogate (PPO), GSPO or CISPO. */
export const lossModes = ['vanilla', 'gspo', 'cispo'] as const;
export type LossMode = (typeof lossModes)[number];

/** How token losses are aggregated into the loss of a mini-batch. */
export const lossAggModes = [
  'token-mean',
  'seq-mean-token-sum',
  'seq-mean-token-mean',
  'seq-mean-token-sum-norm',
] as const;
export type LossAggMode = (typeof lossAggModes)[number];

/** Estimators of the KL divergence per token, with both spellings of each. */
export const klKinds = ['kl', 'k1', 'abs', 'mse', 'k2', 'low_var_kl', 'k3'] as const;
export type KlKind = (typeof klKinds)[number];

export interface ClipOptions {
  clip_ratio_low: number;
  clip_ratio_high: number;
  /** Dual clip constant c > 1: bounds the loss of tokens with a negative advantage. */
  clip_ratio_c: number;
}

export interface PolicyLossSettings extends ClipOptions {
  /** Defaults to the clipped surrogate. */
  policy_loss?: { loss_mode: LossMode };
  entropy_coeff: number;
  use_kl_loss: boolean;
  kl_loss_coef: number;
  kl_loss_type: KlKind;
  loss_agg_mode: LossAggMode;
}

/** Returns the loss mode of the settings. */
export const lossModeOf = ({ policy_loss }: Pick<PolicyLossSettings, 'policy_loss'>): LossMode =>
  policy_loss?.loss_mode ?? 'vanilla';

/** A token's log-ratio to the old policy and its difference to the reference policy are clamped to ± this. */
export const largestLogRatio = 20;
/** Upper clamp of GSPO's sequence log-ratio. */
export const largestSequenceLogRatio = 10;
/** The estimate of k3 is clamped to ± this. */
export const largestK3 = 10;
