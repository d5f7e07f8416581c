// Arguments of an optimizer step other than its samples, and its results: the loss options of policy and critic,
// AdamW's options, metrics, and the gradients of the loss's parts.
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
  /** Maximum difference of a clipped value from the old value. */
  cliprange_value: number;
  loss_agg_mode: LossAggMode;
}

/**
 * Parts of the loss: the surrogate, the entropy bonus and the KL penalty. Each part includes its sign and coefficient.
 */
export type LossPart = 'task' | 'entropy' | 'kl';

/** The gradient of one loss part over a bucket of mini-batches. */
export interface PartGradient {
  /** L2 norm over all gradients, averaged over the mini-batches. */
  norm: number;
  /**
   * ‖mean gradient‖² / variance of the mean gradient, both estimated from slices of the mini-batches; null with a
   * single slice.
   */
  snr: number | null;
}

export interface GradientAnalysis {
  /** Parts that the loss contains; the order of `gradients` and `cosines`. */
  parts: LossPart[];
  /**
   * Per bucket: the gradient of each part, in the order of `parts`, and the loss metrics averaged over the bucket's
   * mini-batches.
   */
  buckets: { gradients: PartGradient[]; metrics: UpdateMetrics }[];
  /**
   * Cosine between the mean gradients of part p in bucket a and part q in bucket b, at [a·parts + p][b·parts + q]; null
   * if a gradient is zero. Exact up to 2²⁰ trained parameters, above that estimated with an error of about 0.001.
   */
  cosines: (number | null)[][];
}
