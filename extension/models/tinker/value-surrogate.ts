// SkyRL's critic loss as a carrier of any gradient of values, like surrogate.ts for log-probs: with old values equal to
// the values just read, nothing is clipped, and the derivative of ½(value − return)² is value − return. With
// return = value − c·dL/dvalue, where c is the loss's divisor, the server takes the gradient of a loss L that was
// computed here. The divisor is that of SkyRL 0.3.0 (ppo_critic_loss, CriticWorkerBase): the number of a sample's tokens,
// times the number of samples until the optimizer step. It is not measured, because a server has one critic, whose
// optimizer a measurement would change.
import type { CriticSample } from '../../engine/training-samples';
import { datumOf, type Datum } from './tinker-wire';

/**
 * Returns the datums whose loss has the gradient `gradients` (dL/dvalue per token) at the values `values`. Every sample
 * must have a masked token, and all samples until the optimizer step must be in one call. Returns null if a number that
 * would be sent is not finite.
 */
export function valueSurrogateData(
  samples: readonly Pick<CriticSample, 'ids' | 'mask'>[],
  values: readonly ArrayLike<number>[],
  gradients: readonly ArrayLike<number>[],
): Datum[] | null {
  const data: Datum[] = [];
  for (const [i, { ids, mask }] of samples.entries()) {
    const divisor = samples.length * mask.reduce((sum, bit) => sum + bit, 0);
    const read = Float32Array.from(mask, (bit, token) => (bit ? values[i][token] : 0));
    const returns = Float32Array.from(mask, (bit, token) =>
      bit ? values[i][token] - divisor * gradients[i][token] : 0,
    );
    if (!returns.every(Number.isFinite)) return null;
    data.push(datumOf(ids, mask, { values: read, returns }));
  }
  return data;
}
