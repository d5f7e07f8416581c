// Per-token estimators of the KL divergence between the policy and the reference policy, from the log-probs of the
// sampled tokens (Schulman, "Approximating KL divergence", 2020). Names follow verl; each estimator except `abs` has
// two names. In training, the graph operations in models/graphs/policy-loss-graph.ts compute the KL loss with the same
// estimators. The estimators' names are in policy-loss-options.ts.
import { klKinds, largestK3, largestLogRatio, type KlKind } from './policy-loss-options';

/**
 * Returns the estimator for a name, or undefined for an unknown name. Accepts hyphens instead of underscores. Ignores a
 * trailing `+`, which in verl changes only the gradient.
 */
export function klKindNamed(name: string): KlKind | undefined {
  const plain = name.replaceAll('-', '_').replace(/\+$/, '');
  return klKinds.find(kind => kind === plain);
}

/**
 * Returns the estimate for one token; `difference` is log π − log π_ref in nats. For k3, the difference is clamped to
 * ±20 and the result to ±10.
 */
export function tokenKl(kind: KlKind, difference: number): number {
  switch (kind) {
    case 'kl':
    case 'k1':
      return difference;
    case 'abs':
      return Math.abs(difference);
    case 'mse':
    case 'k2':
      return 0.5 * difference * difference;
    case 'low_var_kl':
    case 'k3': {
      const bounded = clamp(difference, -largestLogRatio, largestLogRatio);
      return clamp(Math.exp(-bounded) + bounded - 1, -largestK3, largestK3);
    }
  }
}

/** Returns the derivative of `tokenKl` with respect to the difference; 0 if the estimate is clamped. */
export function tokenKlSlope(kind: KlKind, difference: number): number {
  switch (kind) {
    case 'kl':
    case 'k1':
      return 1;
    case 'abs':
      return Math.sign(difference);
    case 'mse':
    case 'k2':
      return difference;
    case 'low_var_kl':
    case 'k3': {
      const isClamped = Math.abs(difference) > largestLogRatio || Math.abs(tokenKl(kind, difference)) >= largestK3;
      return isClamped ? 0 : 1 - Math.exp(-difference);
    }
  }
}

/** Result of `klInReward`: rewards minus the penalty, and the mean KL for the KL controller. */
export interface PenalisedRewards {
  rewards: Float32Array;
  /** Mean KL over the sequence's sampled tokens; 0 if no token was sampled. */
  meanKl: number;
}

/**
 * `algorithm.use_kl_in_reward`: subtracts β·KL from the reward of each sampled token. All arrays have the sequence's
 * length.
 */
export function klInReward(
  sequence: { rewards: Float32Array; logprobs: Float32Array; ref_logprobs: Float32Array; mask: Uint8Array },
  kind: KlKind,
  beta: number,
): PenalisedRewards {
  let sum = 0;
  let count = 0;
  const rewards = sequence.rewards.map((reward, token) => {
    if (!sequence.mask[token]) return reward;
    const kl = tokenKl(kind, sequence.logprobs[token] - sequence.ref_logprobs[token]);
    sum += kl;
    count++;
    return reward - beta * kl;
  });
  return { rewards, meanKl: count > 0 ? sum / count : 0 };
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
