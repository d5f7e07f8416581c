// Numbers that a model on a server has returned for samples, such as log-probs, so that they are not read again. They are
// kept by a sample's ids for as long as the sample lives, and are valid for one version of the weights.
import type { MaskedSample } from './server-model';

export class ReadNumbers {
  private readonly known = new WeakMap<Int32Array, { version: number; mask: Uint8Array; numbers: Float32Array }>();

  keep(samples: readonly MaskedSample[], version: number, numbers: readonly Float32Array[]): void {
    samples.forEach(({ ids, mask }, i) => this.known.set(ids, { version, mask, numbers: numbers[i] }));
  }

  /** The numbers of all samples under a version of the weights; undefined if those of one are unknown. */
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
