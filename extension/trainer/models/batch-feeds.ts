// The feeds that scoring, policy, imitation and critic graphs share: a micro-batch of samples as padded ids, and the maps between
// per-sample arrays and the flat list of its masked tokens. Masked token i of a sample is read at position i − 1, which predicts it.
import type { TrainingSample } from '../engine/engine';
import { causalMask, padRows } from '../engine/padding';
import { float32, int64 } from '../engine/session';
import type { Tensor } from '../engine/session';
import { gradientName } from './policy-graphs';
import type { Weights } from './weights';

type Sample = Pick<TrainingSample, 'ids' | 'mask'>;

export interface BatchFeeds<S extends Sample> {
  /** ids, positions, mask, rows, targets. */
  feeds: Record<string, Tensor>;
  /** Number of masked tokens. */
  count: number;
  /** The masked entries of a per-sample array, in the order of the graph's `n` axis. */
  gather(pick: (sample: S) => Float32Array): Tensor;
  /** The inverse of gather; zeros elsewhere. */
  scatter(flat: Float32Array): Float32Array[];
}

export function batchFeeds<S extends Sample>(samples: readonly S[]): BatchFeeds<S> {
  const t = Math.max(...samples.map(s => s.ids.length));
  const rows: bigint[] = [];
  const targets: bigint[] = [];
  samples.forEach(({ ids, mask }, r) => {
    for (let i = 1; i < ids.length; i++) {
      if (!mask[i]) continue;
      rows.push(BigInt(r * t + i - 1));
      targets.push(BigInt(ids[i]));
    }
  });
  const count = rows.length;
  return {
    feeds: {
      ...padRows(
        samples.map(s => s.ids),
        t,
      ),
      mask: causalMask(t),
      rows: int64(BigInt64Array.from(rows), [count]),
      targets: int64(BigInt64Array.from(targets), [count]),
    },
    count,
    gather(pick) {
      const out = new Float32Array(count);
      let n = 0;
      for (const sample of samples) {
        const values = pick(sample);
        for (let i = 1; i < sample.ids.length; i++) if (sample.mask[i]) out[n++] = values[i];
      }
      return float32(out, [count]);
    },
    scatter(flat) {
      let n = 0;
      return samples.map(({ ids, mask }) => {
        const out = new Float32Array(ids.length);
        for (let i = 1; i < ids.length; i++) if (mask[i]) out[i] = flat[n++];
        return out;
      });
    },
  };
}

export function scalarFeeds(values: Record<string, number>): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(values).map(([name, x]) => [name, float32(new Float32Array([x]), [])]));
}

/** Adds the gradients that a session put out to `sum`. */
export function accumulate(sum: Weights, result: Readonly<Record<string, Tensor>>): void {
  for (const { name } of sum.specs) {
    const total = sum.view(name);
    const part = result[gradientName(name)].data as Float32Array;
    for (let i = 0; i < total.length; i++) total[i] += part[i];
  }
}
