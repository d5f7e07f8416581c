// The coefficient β of the KL penalty in the reward: fixed, or steered towards a target (Ziegler et al., 2019, section 2.2).
// The coefficient is the controller's only state; whoever keeps it writes it into the checkpoint.
import { clamp } from './kl';

export interface KlControlOptions {
  type: 'fixed' | 'adaptive';
  /** Starting value, and the value for good when fixed. */
  kl_coef: number;
  /** KL (nats per token) that the adaptive controller holds. */
  target_kl: number;
  /** Samples over which the coefficient can change by a factor of about 1.2. */
  horizon: number;
}

/** The coefficient after a step over `samples` samples in which a mean KL of `observedKl` was seen. */
export function nextKlCoefficient(
  options: KlControlOptions,
  coefficient: number,
  observedKl: number,
  samples: number,
): number {
  if (options.type === 'fixed') return coefficient;
  const error = clamp(observedKl / options.target_kl - 1, -0.2, 0.2);
  return coefficient * (1 + (error * samples) / options.horizon);
}
