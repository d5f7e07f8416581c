// The importance-sampling loss of a Tinker server as a carrier of any gradient: at the log-probs just read, the
// derivative of −exp(logπ − logprobs)·advantage with respect to a token's log-prob is −advantage. With
// advantages = −dL/dlogπ the server therefore takes exactly the gradient of a loss L that was computed here, whatever
// its clips, masks, KL terms and aggregation. Servers reduce token losses differently (`Reduction`, measured by
// server-probe.ts); the advantages are scaled so that every server sums them.
import type { TrainingSample } from '../../engine/training-samples';
import { datumOf, type Datum } from './tinker-wire';

/** How a server reduces weighted token losses to the loss of an optimizer step. */
export interface Reduction {
  /** Token losses of a sample: `sum` adds them, `mean` divides their sum by the sum of the token weights. */
  tokens: 'sum' | 'mean';
  /** Losses of the samples until the optimizer step. */
  samples: 'sum' | 'mean';
}

/**
 * Returns the datums whose loss has the gradient `gradients` (dL/dlogπ per token) at the log-probs `logprobs`. Every
 * sample must have a masked token, and all samples until the optimizer step must be in one call. Returns null if a number
 * that would be sent is not finite.
 */
export function surrogateData(
  samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[],
  logprobs: readonly ArrayLike<number>[],
  gradients: readonly ArrayLike<number>[],
  { tokens, samples: over }: Reduction,
): Datum[] | null {
  const data: Datum[] = [];
  for (const [i, { ids, mask }] of samples.entries()) {
    const masked = mask.reduce((sum, bit) => sum + bit, 0);
    const scale = (tokens === 'mean' ? masked : 1) * (over === 'mean' ? samples.length : 1);
    const advantages = Float32Array.from(gradients[i], gradient => -gradient * scale);
    const read = Float32Array.from(mask, (bit, token) => (bit ? logprobs[i][token] : 0));
    if (!advantages.every(Number.isFinite) || !read.every(Number.isFinite)) return null;
    data.push(datumOf(ids, mask, { logprobs: read, advantages }));
  }
  return data;
}
