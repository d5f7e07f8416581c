// Two factors by which a sample's advantages are multiplied, as in RAGEN. The first factor depends on the reward spread
// of the sample's prompt group. The second factor depends on the sample's length.
import { maximum, minimum } from '../common/lists';

/** Group weights with the metrics that RAGEN logs for them. */
export interface SoftReweight {
  /** One weight per group, in the order of `groupStds`. */
  weights: Float32Array;
  metrics: Record<'soft_reweight_min' | 'soft_reweight_max' | 'soft_reweight_mean', number>;
}

/**
 * `soft_advantage_reweight`: returns σ_group/(max σ + 1e-6), so prompts with little reward spread get a small weight.
 * `groupStds` must not be empty.
 */
export function softAdvantageWeights(groupStds: ArrayLike<number>): SoftReweight {
  const stds = Float64Array.from(groupStds);
  const largest = stds.reduce((max, std) => Math.max(max, std), 0);
  const weights = Float32Array.from(stds, std => std / (largest + 1e-6));
  return {
    weights,
    metrics: {
      soft_reweight_min: minimum(weights),
      soft_reweight_max: maximum(weights),
      soft_reweight_mean: weights.reduce((sum, weight) => sum + weight, 0) / weights.length,
    },
  };
}

/**
 * `grpo_advantage_length_weight`: returns for each sample the mean length of all samples divided by the sample's
 * length. The weight of a sample without sampled tokens is 0.
 */
export function lengthWeights(lengths: ArrayLike<number>): Float32Array {
  const all = Float64Array.from(lengths);
  const mean = all.reduce((sum, length) => sum + length, 0) / Math.max(all.length, 1);
  return Float32Array.from(all, length => (length > 0 ? mean / length : 0));
}
