// Names, options and bounds of the policy loss. Used by the configuration's schema, the engine and `ragen algo`, and by
// both implementations of the loss: the reference (policy-loss.ts) and the graph operations for training
// (models/graphs/policy-loss-graph.ts). Names follow verl.

/**
 * Loss modes: PPO's clipped surrogate per token (`vanilla`), GSPO, CISPO, SAPO, GMPO (`geo_mean`), Clip-Cov and KL-Cov.
 */
export const lossModes = ['vanilla', 'gspo', 'cispo', 'sapo', 'geo_mean', 'clip_cov', 'kl_cov'] as const;
export type LossMode = (typeof lossModes)[number];

/**
 * Whether the loss of a token depends on the ratios of its whole sequence. The log-ratios of these modes are not clamped to
 * ±20.
 */
export const usesSequenceRatios = (mode: LossMode): boolean => mode === 'gspo' || mode === 'geo_mean';

/** Whether some tokens of the mini-batch are selected for another loss, by the covariance of log-prob and advantage. */
export const selectsTokens = (mode: LossMode): mode is 'clip_cov' | 'kl_cov' =>
  mode === 'clip_cov' || mode === 'kl_cov';

/** How token losses are aggregated into the loss of a mini-batch. */
export const lossAggModes = [
  'token-mean',
  'seq-mean-token-sum',
  'seq-mean-token-mean',
  'seq-mean-token-sum-norm',
] as const;
export type LossAggMode = (typeof lossAggModes)[number];

/**
 * Names of the estimators of the KL divergence per token. Three estimators have two names: `kl` = `k1`, `mse` = `k2`,
 * `low_var_kl` = `k3`.
 */
export const klKinds = ['kl', 'k1', 'abs', 'mse', 'k2', 'low_var_kl', 'k3'] as const;
export type KlKind = (typeof klKinds)[number];

export interface ClipOptions {
  clip_ratio_low: number;
  clip_ratio_high: number;
  /** Dual clip constant c > 1: bounds the loss of tokens with a negative advantage. */
  clip_ratio_c: number;
}

/** Steepness of SAPO's gate for tokens with a positive and with any other advantage; both are above 0. */
export interface GateOptions {
  tau_pos: number;
  tau_neg: number;
}

/** Which tokens Clip-Cov and KL-Cov select, and what they do to them (covariance.ts). */
export interface CovarianceOptions {
  /** Share of the sampled tokens that Clip-Cov leaves out, from 0 to 1. */
  clip_cov_ratio: number;
  /** Clip-Cov selects only tokens whose covariance is above `clip_cov_lb` and below `clip_cov_ub`. */
  clip_cov_lb: number;
  clip_cov_ub: number;
  /** Share of the sampled tokens that KL-Cov penalizes, from 0 to 1. */
  kl_cov_ratio: number;
  /** Weight of KL-Cov's penalty. */
  ppo_kl_coef: number;
}

export interface PolicyLossSettings extends ClipOptions, Partial<GateOptions> {
  /** Loss mode; defaults to `vanilla`, PPO's clipped surrogate. */
  policy_loss?: { loss_mode: LossMode } & Partial<CovarianceOptions>;
  /** Seed of Clip-Cov's random selection. */
  selection_seed?: number;
  entropy_coeff: number;
  use_kl_loss: boolean;
  kl_loss_coef: number;
  kl_loss_type: KlKind;
  loss_agg_mode: LossAggMode;
}

export const lossModeOf = ({ policy_loss }: Pick<PolicyLossSettings, 'policy_loss'>): LossMode =>
  policy_loss?.loss_mode ?? 'vanilla';

/** Returns the options of SAPO's gate; verl's defaults are 1 and 1.05. */
export const gateOf = ({ tau_pos = 1, tau_neg = 1.05 }: Partial<GateOptions>): GateOptions => ({ tau_pos, tau_neg });

/** Returns the options of Clip-Cov and KL-Cov, by default verl's. */
export const covarianceOf = ({ policy_loss }: { policy_loss?: Partial<CovarianceOptions> }): CovarianceOptions => ({
  clip_cov_ratio: policy_loss?.clip_cov_ratio ?? 0.0002,
  clip_cov_lb: policy_loss?.clip_cov_lb ?? 1,
  clip_cov_ub: policy_loss?.clip_cov_ub ?? 5,
  kl_cov_ratio: policy_loss?.kl_cov_ratio ?? 0.0002,
  ppo_kl_coef: policy_loss?.ppo_kl_coef ?? 0.1,
});

/**
 * Maximum absolute value of two differences: a token's log-prob minus its log-prob under the old policy (the
 * log-ratio), and a token's log-prob minus its log-prob under the reference policy.
 */
export const largestLogRatio = 20;
/** Upper clamp of GSPO's sequence log-ratio. */
export const largestSequenceLogRatio = 10;
/** Absolute bound of the k3 estimate, in nats. */
export const largestK3 = 10;
