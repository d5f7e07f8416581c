// Computes the policy loss of a mini-batch for engines that return the log-probs of the sampled tokens, but not the
// complete distributions. Returns the gradient for each token, and the metrics. The entropy of a token's distribution
// is estimated by −log π of the sampled token. This estimate is unbiased on-policy.
import {
  tokenLosses,
  weightedPolicyLoss,
  weightedPolicyLossGradient,
  type PolicySequence,
} from '../../algorithms/policy-loss';
import type { PolicyLossOptions, UpdateMetrics } from '../../engine/loss-options';
import type { WeightedSample } from '../../engine/training-samples';

/**
 * Returns dL/dlogπ of each token, and the loss metrics under RAGEN's keys. The metric `entropy` is replaced by
 * `entropy_estimate`.
 * @param logprobs log-probs under the current weights, one array per sample
 */
export function sampledLoss(
  samples: readonly WeightedSample[],
  logprobs: readonly Float32Array[],
  loss: PolicyLossOptions,
): { gradients: Float64Array[]; metrics: UpdateMetrics } {
  const sequences = samples.map(({ mask, old_logprobs, ref_logprobs, advantages }, i): PolicySequence => ({
    logprobs: logprobs[i],
    old_logprobs,
    advantages,
    mask,
    entropies: logprobs[i].map(value => -value),
    ...(loss.use_kl_loss && { ref_logprobs }),
  }));
  const weights = samples.map(sample => sample.weights);
  const losses = tokenLosses(sequences, loss);
  const gradients = weightedPolicyLossGradient(sequences, weights, loss, losses);
  addEntropyBonus(gradients, sequences, weights, loss.entropy_coeff);
  const sums = weightedPolicyLoss(sequences, weights, loss, losses);
  return {
    gradients,
    metrics: {
      pg_loss: sums.pg_loss,
      entropy_loss: sums.entropy,
      ...(loss.use_kl_loss && { kl_loss: sums.kl_loss, kl_coef: loss.kl_loss_coef }),
      entropy_estimate: meanEntropy(sequences),
      pg_clipfrac: sums.pg_clipfrac,
      pg_clipfrac_lower: sums.pg_clipfrac_lower,
      ppo_kl: sums.ppo_kl,
    },
  };
}

/**
 * Adds an estimate of the gradient of the entropy bonus, −coefficient · Σ weight · entropy, to the given gradients in
 * place. The estimate is a score-function estimate: the derivative with respect to a sampled token's log π is
 * coefficient · weight · (log π − b). The baseline b is the mean log-prob of the other tokens of the mini-batch.
 */
function addEntropyBonus(
  gradients: readonly Float64Array[],
  sequences: readonly PolicySequence[],
  weights: readonly Float32Array[],
  coefficient: number,
): void {
  if (coefficient === 0) return;
  let [sum, count] = [0, 0];
  const each = (visit: (row: number, token: number) => void): void =>
    sequences.forEach(({ mask }, row) => mask.forEach((bit, token) => bit && visit(row, token)));
  each((row, token) => {
    sum += sequences[row].logprobs[token];
    count++;
  });
  each((row, token) => {
    const own = sequences[row].logprobs[token];
    const others = count > 1 ? (sum - own) / (count - 1) : 0;
    gradients[row][token] += coefficient * weights[row][token] * (own - others);
  });
}

/** Returns the mean of the estimated entropies of the masked tokens. */
function meanEntropy(sequences: readonly PolicySequence[]): number {
  let [sum, count] = [0, 0];
  for (const { mask, entropies } of sequences)
    mask.forEach((bit, token) => {
      if (!bit) return;
      sum += entropies![token];
      count++;
    });
  return sum / Math.max(count, 1);
}
