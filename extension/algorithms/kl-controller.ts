// Controls the coefficient β of the KL penalty in the reward: fixed, or adapted towards a target (Ziegler et al., 2019,
// section 2.2). The coefficient is the only state; the caller saves it in the checkpoint.
import { clamp } from './kl';

export interface KlControlOptions {
  type: 'fixed' | 'adaptive';
  /** Initial coefficient β; with type `fixed`, β keeps this value. */
  kl_coef: number;
  /** Target KL of the adaptive controller, in nats per token. */
  target_kl: number;
  /** Number of samples over which the coefficient can change by a factor of about 1.2. */
  horizon: number;
}

/** Returns the coefficient after a step that trained on `samples` samples, whose mean KL is `observedKl`. */
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
