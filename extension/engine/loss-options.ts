// Arguments of an optimizer step except its samples: the loss options of policy and critic, and AdamW's options. This
// file also declares the results of the step: metrics, and the gradients of the parts of the loss.
import type { LossAggMode, PolicyLossSettings } from '../algorithms/policy-loss-options';

export interface PolicyLossOptions extends PolicyLossSettings {
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
  /** Maximum difference between a clipped value and the old value. */
  cliprange_value: number;
  loss_agg_mode: LossAggMode;
}

/**
 * Parts of the loss: the surrogate, the entropy bonus and the KL penalty. Each part includes its sign and coefficient.
 */
export type LossPart = 'task' | 'entropy' | 'kl';

/** The gradient of one loss part over a bucket of mini-batches. */
export interface PartGradient {
  /** L2 norm of the gradient over all trained parameters, averaged over the mini-batches. */
  norm: number;
  /**
   * Signal-to-noise ratio: ‖mean gradient‖² / variance of the mean gradient. Numerator and denominator are estimated
   * from slices of the mini-batches. Null if there is only one slice.
   */
  snr: number | null;
}

export interface GradientAnalysis {
  /** Parts that the loss contains, in the order of `gradients` and `cosines`. */
  parts: LossPart[];
  /**
   * One entry per bucket. `gradients`: the gradient of each part, in the order of `parts`. `metrics`: the loss metrics,
   * averaged over the mini-batches of the bucket.
   */
  buckets: { gradients: PartGradient[]; metrics: UpdateMetrics }[];
  /**
   * Cosines between mean gradients. The entry [a·parts + p][b·parts + q] compares part p in bucket a with part q in
   * bucket b. The entry is null if one of the two gradients is zero. Cosines are exact for up to 2²⁰ trained
   * parameters. For more parameters they are estimated with an error of about 0.001.
   */
  cosines: (number | null)[][];
}
