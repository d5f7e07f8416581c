// What an optimizer step of the engine takes besides its samples, and what it returns: the policy's and the critic's
// loss, AdamW's options, metrics, and the gradients of the loss's parts.

export interface PolicyLossOptions {
  /** Token-level clipped surrogate (vanilla, the default), GSPO or CISPO loss. */
  policy_loss?: { loss_mode: 'vanilla' | 'gspo' | 'cispo' };
  clip_ratio_low: number;
  clip_ratio_high: number;
  /** Dual clip constant c > 1. */
  clip_ratio_c: number;
  entropy_coeff: number;
  use_kl_loss: boolean;
  kl_loss_coef: number;
  kl_loss_type: 'kl' | 'k1' | 'abs' | 'mse' | 'k2' | 'low_var_kl' | 'k3';
  loss_agg_mode: 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';
  temperature: number;
}

export interface OptimizerOptions {
  lr: number;
  betas: [number, number];
  eps: number;
  weight_decay: number;
  grad_clip: number;
}

/**
 * Metrics under RAGEN's keys, without prefix: pg_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl, entropy, kl_loss,
 * grad_norm, lr.
 */
export type UpdateMetrics = Record<string, number>;

export interface CriticLossOptions {
  /** Values are clipped to ± this around the old values. */
  cliprange_value: number;
  loss_agg_mode: PolicyLossOptions['loss_agg_mode'];
}

/** Terms of the loss, each with its sign and weight: the surrogate, the entropy bonus and the KL penalty. */
export type LossPart = 'task' | 'entropy' | 'kl';

/** The gradient of one loss part over a bucket of mini-batches. */
export interface PartGradient {
  /** Global gradient norm, averaged over the mini-batches. */
  norm: number;
  /**
   * ‖mean gradient‖² / variance of that mean, both estimated from slices of the mini-batches; null if there is one
   * slice.
   */
  snr: number | null;
}

export interface GradientAnalysis {
  /** The parts that are present in the loss. */
  parts: LossPart[];
  /** For each bucket, the gradients of the parts in that order, and the loss metrics averaged over its mini-batches. */
  buckets: { gradients: PartGradient[]; metrics: UpdateMetrics }[];
  /**
   * Cosines between the mean gradients of bucket a's part p and bucket b's part q, at [a·parts + p][b·parts + q]; null
   * if one is zero. Exact up to 2²⁰ trained parameters, beyond that estimated within about 0.001.
   */
  cosines: (number | null)[][];
}
