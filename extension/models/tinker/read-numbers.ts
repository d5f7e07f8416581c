// Caches the numbers that a model on a server has returned for each sample, such as log-probs, so that they need not be
// requested again. The key of an entry is the sample's `ids` array; when this array is garbage-collected, the entry is
// removed. An entry is valid for one version of the weights.
import type { MaskedSample } from './server-model';

export class ReadNumbers {
  private readonly known = new WeakMap<Int32Array, { version: number; mask: Uint8Array; numbers: Float32Array }>();

  keep(samples: readonly MaskedSample[], version: number, numbers: readonly Float32Array[]): void {
    samples.forEach(({ ids, mask }, i) => this.known.set(ids, { version, mask, numbers: numbers[i] }));
  }

  /**
   * Returns the cached numbers of the samples for a version of the weights. Returns undefined if the numbers of at
   * least one sample are not cached.
   */
  get(samples: readonly MaskedSample[], version: number): Float32Array[] | undefined {
    const found: Float32Array[] = [];
    for (const { ids, mask } of samples) {
      const entry = this.known.get(ids);
      if (entry?.version !== version || entry.mask !== mask) return undefined;
      found.push(entry.numbers);
    }
    return found;
  }
}
