// Makes a server train a critic with an arbitrary gradient dL/dvalue that was computed on this machine. (For a policy,
// surrogate.ts does the same with dL/dlogπ.) SkyRL's critic loss serves as the surrogate loss. If the old values are
// equal to the current values, nothing is clipped. The derivative of the loss ½(value − return)² is then value −
// return. The server divides this loss by a number c. If the returns are set to value − c·dL/dvalue, the server
// therefore applies the gradient of the loss L. c is defined as in SkyRL 0.3.0 (ppo_critic_loss, CriticWorkerBase): the
// number of masked tokens of the sample, times the number of samples in the optimizer step. c is not measured: a server
// has only one critic, and a measurement would change the optimizer state of this critic.
import type { CriticSample } from '../../engine/training-samples';
import { datumOf, type Datum } from './tinker-wire';

/**
 * Returns the datums for which the surrogate loss has the gradient `gradients` (dL/dvalue per token). `values` are the
 * current values. Every sample must have at least one masked token. All samples of an optimizer step must be passed in
 * one call. Returns null if a number that would be sent is not finite.
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
