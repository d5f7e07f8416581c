// Makes a Tinker server apply an arbitrary gradient that was computed on this machine. The server's importance-sampling
// loss −exp(logπ − logprobs)·advantage serves as the surrogate loss. If `logprobs` are the current log-probs, the
// derivative of this loss with respect to a token's log-prob is −advantage. If the advantages are set to −dL/dlogπ, the
// server therefore applies exactly the gradient of the loss L, for any clipping, masks, KL terms and aggregation in L.
// Some servers sum token losses and others average them (`Reduction`, measured by server-probe.ts). The advantages are
// scaled so that every server applies the gradient of the sum.
import type { TrainingSample } from '../../engine/training-samples';
import { datumOf, type Datum } from './tinker-wire';

/** How a server computes the loss of an optimizer step from the weighted losses of tokens. */
export interface Reduction {
  /**
   * How the loss of a sample is computed from its token losses: `sum` adds them, and `mean` divides their sum by the
   * sum of the token weights.
   */
  tokens: 'sum' | 'mean';
  /** How the losses of all samples since the previous optimizer step are combined. */
  samples: 'sum' | 'mean';
}

/**
 * Returns the datums for which the surrogate loss has the gradient `gradients` (dL/dlogπ per token). `logprobs` are the
 * current log-probs. Every sample must have at least one masked token. All samples of an optimizer step must be passed
 * in one call. Returns null if a number that would be sent is not finite.
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
