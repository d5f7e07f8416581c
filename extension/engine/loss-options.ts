// What an optimizer step of the engine takes besides its samples, and what it returns: the policy's and the critic's
// loss, AdamW's options, metrics, and the gradients of the loss's parts.
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
  /** Values are clipped to ± this around the old values. */
  cliprange_value: number;
  loss_agg_mode: LossAggMode;
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
