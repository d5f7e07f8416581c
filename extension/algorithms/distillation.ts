// On-policy distillation: the policy plays its own episodes, and a teacher scores the sampled tokens. The advantage of a
// token is the negative difference between the policy's and the teacher's log-prob, an estimate of the reverse KL
// divergence, optionally with the discounted divergences of later tokens. The formula is that of tinker-cookbook 0.6.1
// (distillation/train_on_policy.py, incorporate_kl_penalty); Thinking Machines Lab, On-Policy Distillation, 2025.

/** One sequence; all arrays have one entry per token. */
export interface DistilledSequence {
  /** Log-probs of the sampled tokens under the policy before its update and under the teacher, in nats. */
  policy: ArrayLike<number>;
  teacher: ArrayLike<number>;
  mask: Uint8Array;
}

export interface DistillationOptions {
  /** Factor of the divergence, above 0. */
  kl_penalty_coef: number;
  /** Discount of the divergences of later tokens, from 0 (only the token's own divergence counts) to 1. */
  kl_discount_factor: number;
}

/**
 * Returns the advantages, 0 where mask = 0, and the mean divergence per token with mask = 1, in nats (0 without such
 * tokens). Masked tokens have no divergence, but count as tokens in the discount.
 */
export function distillationAdvantages(
  sequences: readonly DistilledSequence[],
  { kl_penalty_coef, kl_discount_factor }: DistillationOptions,
): { advantages: Float32Array[]; kl: number } {
  let [sum, count] = [0, 0];
  const advantages = sequences.map(({ policy, teacher, mask }) => {
    const found = new Float32Array(mask.length);
    let later = 0;
    for (let t = mask.length - 1; t >= 0; t--) {
      const divergence = mask[t] === 1 ? policy[t] - teacher[t] : 0;
      later = -kl_penalty_coef * divergence + kl_discount_factor * later;
      if (mask[t] === 0) continue;
      found[t] = later;
      sum += divergence;
      count++;
    }
    return found;
  });
  return { advantages, kl: count > 0 ? sum / count : 0 };
}
