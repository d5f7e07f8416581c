// Keys and values of past tokens. Between calls each row owns its own, exactly as long as it is (`RowCache`); during a call the
// rows that are generating share one padded batch (`BatchCache`, [rows, kvHeads, capacity, headSize] a layer), which is packed anew
// when it must grow or when half of its rows are done. Rows with the same prompt share its prefill by copying.
import { float32 } from '../engine/session';
import type { Tensor } from '../engine/session';
import { masked } from '../engine/padding';
import type { DecoderConfig } from './decoder-config';

/** Capacity grows in steps of this many tokens. */
const block = 32;

export class RowCache {
  length = 0;
  /** Sampled last and not yet in the cache: it goes in front of what is appended next. */
  pending: number | null = null;
  /** 2·layers arrays (keys of layer 0, values of layer 0, keys of layer 1, …), each [kvHeads, length, headSize]. */
  readonly parts: Float32Array[];

  constructor(readonly config: Pick<DecoderConfig, 'layers' | 'kvHeads' | 'headSize'>) {
    this.parts = Array.from({ length: 2 * config.layers }, () => new Float32Array(0));
  }

  /** Shares the other row's content; parts are replaced, never written in place. */
  copyFrom(other: RowCache): void {
    this.length = other.length;
    other.parts.forEach((part, i) => (this.parts[i] = part));
  }
}

export class BatchCache {
  readonly parts: Float32Array[];
  readonly mask: Float32Array;
  readonly lengths: number[];
  readonly capacity: number;
  private readonly count: number;

  /** Packs `rows` into a batch with room for at least one more token each. */
  constructor(
    private readonly rows: readonly RowCache[],
    private readonly config: Pick<DecoderConfig, 'layers' | 'kvHeads' | 'headSize'>,
  ) {
    this.count = rows.length;
    this.lengths = rows.map(row => row.length);
    this.capacity = Math.ceil((Math.max(...this.lengths) + 1) / block) * block;
    const { kvHeads, headSize } = config;
    const { capacity } = this;
    this.mask = new Float32Array(this.count * capacity).fill(masked);
    rows.forEach((row, r) => this.mask.fill(0, r * capacity, r * capacity + row.length));
    this.parts = Array.from({ length: 2 * config.layers }, (_, i) => {
      const part = new Float32Array(this.count * kvHeads * capacity * headSize);
      rows.forEach((row, r) => {
        for (let h = 0; h < kvHeads; h++) {
          const source = row.parts[i].subarray(h * row.length * headSize, (h + 1) * row.length * headSize);
          part.set(source, (r * kvHeads + h) * capacity * headSize);
        }
      });
      return part;
    });
  }

  get full(): boolean {
    return this.lengths.some(length => length >= this.capacity);
  }

  /** Feeds of the generate graph. */
  feeds(): Record<string, Tensor> {
    const { count, capacity } = this;
    const { kvHeads, headSize } = this.config;
    const feeds: Record<string, Tensor> = { past_mask: float32(this.mask, [count, 1, 1, 1, capacity]) };
    this.parts.forEach((part, i) => {
      const name = `past_${i % 2 === 0 ? 'key' : 'value'}.${i >> 1}`;
      feeds[name] = float32(part, [count, kvHeads, capacity, headSize]);
    });
    return feeds;
  }

  /** Appends one token's keys and values (the graph's outputs for t = 1) to each row of `active`. */
  append(outputs: Readonly<Record<string, Tensor>>, active: readonly boolean[]): void {
    const { kvHeads, headSize } = this.config;
    const { capacity } = this;
    this.parts.forEach((part, i) => {
      const fresh = newPart(outputs, i);
      for (let r = 0; r < this.count; r++) {
        if (!active[r]) continue;
        for (let h = 0; h < kvHeads; h++) {
          const from = (r * kvHeads + h) * headSize;
          const to = ((r * kvHeads + h) * capacity + this.lengths[r]) * headSize;
          for (let k = 0; k < headSize; k++) part[to + k] = fresh[from + k];
        }
      }
    });
    for (let r = 0; r < this.count; r++) {
      if (active[r]) this.mask[r * capacity + this.lengths[r]++] = 0;
    }
  }

  /** Gives each row its own keys and values back. */
  unpack(): void {
    const { kvHeads, headSize } = this.config;
    this.rows.forEach((row, r) => {
      const length = this.lengths[r];
      this.parts.forEach((part, i) => {
        const own = new Float32Array(kvHeads * length * headSize);
        for (let h = 0; h < kvHeads; h++) {
          const from = (r * kvHeads + h) * this.capacity * headSize;
          own.set(part.subarray(from, from + length * headSize), h * length * headSize);
        }
        row.parts[i] = own;
      });
      row.length = length;
    });
  }
}

/** Appends a chunk's keys and values (outputs [rows, kvHeads, t, headSize]) to rows: the first `counts[r]` of its t tokens. */
export function appendChunk(
  rows: readonly RowCache[],
  outputs: Readonly<Record<string, Tensor>>,
  t: number,
  counts: readonly number[],
): void {
  rows.forEach((row, r) => {
    const { kvHeads, headSize } = row.config;
    const length = row.length + counts[r];
    row.parts.forEach((past, i) => {
      const fresh = newPart(outputs, i);
      const own = new Float32Array(kvHeads * length * headSize);
      for (let h = 0; h < kvHeads; h++) {
        own.set(past.subarray(h * row.length * headSize, (h + 1) * row.length * headSize), h * length * headSize);
        const from = (r * kvHeads + h) * t * headSize;
        own.set(fresh.subarray(from, from + counts[r] * headSize), (h * length + row.length) * headSize);
      }
      row.parts[i] = own;
    });
    row.length = length;
  });
}

function newPart(outputs: Readonly<Record<string, Tensor>>, i: number): Float32Array {
  return outputs[`${i % 2 === 0 ? 'key' : 'value'}.${i >> 1}`].data as Float32Array;
}
