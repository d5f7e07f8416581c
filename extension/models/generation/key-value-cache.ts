// Keys and values of past tokens on the host. Between calls, each row has separate arrays of exact length (`RowCache`).
// During a call the active rows share one batch (`BatchCache`, [rows, kvHeads, capacity, headSize] per layer). When a
// row finishes, the last row moves to its index; waiting rows are added at the end. A prompt that several rows share is
// computed once. Invariant: capacities are multiples of `block`. The sums of a row are then computed in the same SIMD
// lanes, whichever other rows are in the batch.
import { appendAll, maximum } from '../../common/lists';
import { float32 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import { masked } from '../../engine/session/padding';
import type { DecoderConfig } from '../decoder/decoder-config';

/** The capacity of a row is a multiple of this number of tokens. */
export const block = 32;

type Shape = Pick<DecoderConfig, 'layers' | 'kvHeads' | 'headSize'>;

export class RowCache {
  length = 0;
  /** Position of the next token minus `length`: 0, or less after pictures. */
  shift = 0;
  /** Last sampled token, which is not cached yet; the next append starts with it. */
  pending: number | null = null;
  /** 2·layers arrays (keys of layer 0, values of layer 0, keys of layer 1, …), each [kvHeads, length, headSize]. */
  readonly parts: Float32Array[];

  constructor(readonly config: Shape) {
    this.parts = Array.from({ length: 2 * config.layers }, () => new Float32Array(0));
  }

  get nextPosition(): number {
    return this.length + this.shift;
  }

  /**
   * Makes this row share the arrays of the other row. Later appends do not change these arrays, because each append
   * creates new arrays.
   */
  copyFrom(other: RowCache): void {
    this.length = other.length;
    this.shift = other.shift;
    other.parts.forEach((part, i) => (this.parts[i] = part));
  }
}

export class BatchCache {
  private readonly rows: RowCache[] = [];
  private readonly lengths: number[] = [];
  private parts: Float32Array[] = [];
  private mask = new Float32Array(0);
  private room = 0;
  private capacity = 0;

  constructor(private readonly config: Shape) {}

  get count(): number {
    return this.rows.length;
  }

  /** Position of the next token of each row. */
  get positions(): readonly number[] {
    return this.lengths.map((length, r) => length + this.rows[r].shift);
  }

  /** Adds rows at the end. */
  enter(rows: readonly RowCache[]): void {
    if (rows.length === 0) return;
    const first = this.count;
    appendAll(this.rows, rows);
    appendAll(
      this.lengths,
      rows.map(row => row.length),
    );
    this.makeRoom(this.count, maximum(this.lengths) + 1, first);
    rows.forEach((row, i) => {
      const r = first + i;
      this.mask.fill(masked, r * this.capacity, (r + 1) * this.capacity);
      this.mask.fill(0, r * this.capacity, r * this.capacity + row.length);
      this.parts.forEach((part, layer) =>
        this.copyHeads(row.parts[layer], row.length, 0, part, this.capacity, r, row.length),
      );
    });
  }

  /**
   * Copies the keys and values of row r from the batch into the arrays of the row's `RowCache`. The last row moves to
   * index r.
   */
  releaseRow(r: number): void {
    const row = this.rows[r];
    const length = this.lengths[r];
    const { kvHeads, headSize } = this.config;
    this.parts.forEach((part, i) => {
      const own = new Float32Array(kvHeads * length * headSize);
      this.copyHeads(part, this.capacity, r, own, length, 0, length);
      row.parts[i] = own;
    });
    row.length = length;
    const last = this.count - 1;
    if (r !== last) {
      const size = this.rowSize;
      for (const part of this.parts) part.copyWithin(r * size, last * size, (last + 1) * size);
      this.mask.copyWithin(r * this.capacity, last * this.capacity, (last + 1) * this.capacity);
      this.rows[r] = this.rows[last];
      this.lengths[r] = this.lengths[last];
    }
    this.rows.pop();
    this.lengths.pop();
  }

  /** Returns the feeds of the generate graph for appending one token per row. */
  feeds(): Record<string, Tensor> {
    const { count, capacity } = this;
    const { kvHeads, headSize } = this.config;
    const feeds: Record<string, Tensor> = {
      past_mask: float32(this.mask.subarray(0, count * capacity), [count, 1, 1, 1, capacity]),
    };
    this.parts.forEach((part, i) => {
      const dims = [count, kvHeads, capacity, headSize];
      feeds[pastName(i)] = float32(part.subarray(0, count * this.rowSize), dims);
    });
    return feeds;
  }

  /** Appends one token's keys and values (the graph's outputs [count, kvHeads·headSize]) to each row. */
  append(outputs: Readonly<Record<string, Tensor>>): void {
    const { kvHeads, headSize } = this.config;
    const { capacity, count } = this;
    this.parts.forEach((part, i) => {
      const fresh = outputs[newName(i)].data as Float32Array;
      for (let r = 0; r < count; r++) {
        for (let h = 0; h < kvHeads; h++) {
          const from = (r * kvHeads + h) * headSize;
          const to = ((r * kvHeads + h) * capacity + this.lengths[r]) * headSize;
          for (let k = 0; k < headSize; k++) part[to + k] = fresh[from + k];
        }
      }
    });
    for (let r = 0; r < count; r++) this.mask[r * capacity + this.lengths[r]++] = 0;
    this.makeRoom(count, maximum(this.lengths, 0) + 1, count);
  }

  private get rowSize(): number {
    return this.config.kvHeads * this.capacity * this.config.headSize;
  }

  /** Ensures room for `rows` rows of `tokens` tokens; the first `kept` rows keep their content. */
  private makeRoom(rows: number, tokens: number, kept: number): void {
    const capacity = Math.max(this.capacity, Math.ceil(tokens / block) * block);
    if (rows <= this.room && capacity === this.capacity) return;
    const { kvHeads, headSize, layers } = this.config;
    const room = Math.max(rows, this.room);
    const old = { parts: this.parts, mask: this.mask, capacity: this.capacity };
    this.room = room;
    this.capacity = capacity;
    this.mask = new Float32Array(room * capacity).fill(masked);
    this.parts = Array.from({ length: 2 * layers }, (_, i) => {
      const part = new Float32Array(room * kvHeads * capacity * headSize);
      for (let r = 0; r < kept; r++) this.copyHeads(old.parts[i], old.capacity, r, part, capacity, r, this.lengths[r]);
      return part;
    });
    for (let r = 0; r < kept; r++) this.mask.fill(0, r * capacity, r * capacity + this.lengths[r]);
  }

  /** For each head of a row, copies the first `length` tokens between arrays of different capacity. */
  private copyHeads(
    source: Float32Array,
    sourceCapacity: number,
    sourceRow: number,
    target: Float32Array,
    targetCapacity: number,
    targetRow: number,
    length: number,
  ): void {
    const { kvHeads, headSize } = this.config;
    for (let h = 0; h < kvHeads; h++) {
      const from = (sourceRow * kvHeads + h) * sourceCapacity * headSize;
      const to = (targetRow * kvHeads + h) * targetCapacity * headSize;
      target.set(source.subarray(from, from + length * headSize), to);
    }
  }
}

/**
 * Returns the cached keys and values of rows as feeds of the generate graph. All rows are padded to the length of the
 * longest row.
 */
export function pastFeeds(rows: readonly RowCache[], config: Shape): Record<string, Tensor> {
  const batch = new BatchCache(config);
  batch.enter(rows);
  return batch.feeds();
}

/**
 * Returns the cached keys and values of rows as feeds of the append graph: one after another, [past, headSize], and a
 * dummy at the end.
 */
export function joinedPast(rows: readonly RowCache[], { layers, kvHeads, headSize }: Shape): Record<string, Tensor> {
  const past = rows.reduce((sum, { length }) => sum + length, 0) * kvHeads + 1;
  const feeds: Record<string, Tensor> = {};
  for (let i = 0; i < 2 * layers; i++) {
    const all = new Float32Array(past * headSize);
    let at = 0;
    for (const { parts } of rows) {
      all.set(parts[i], at);
      at += parts[i].length;
    }
    feeds[pastName(i)] = float32(all, [past, headSize]);
  }
  return feeds;
}

/**
 * Appends `counts[r]` tokens to each row r. The keys and values are packed outputs [tokens, kvHeads·headSize], in which
 * the new tokens of row r begin at index `starts[r]`.
 */
export function appendChunks(
  rows: readonly RowCache[],
  outputs: Readonly<Record<string, Tensor>>,
  starts: readonly number[],
  counts: readonly number[],
): void {
  rows.forEach((row, r) => {
    const { kvHeads, headSize } = row.config;
    const width = kvHeads * headSize;
    const length = row.length + counts[r];
    row.parts.forEach((past, i) => {
      const fresh = outputs[newName(i)].data as Float32Array;
      const own = new Float32Array(width * length);
      for (let h = 0; h < kvHeads; h++) {
        own.set(past.subarray(h * row.length * headSize, (h + 1) * row.length * headSize), h * length * headSize);
        const to = (h * length + row.length) * headSize;
        if (kvHeads === 1) own.set(fresh.subarray(starts[r] * width, (starts[r] + counts[r]) * width), to);
        else
          for (let t = 0; t < counts[r]; t++) {
            const from = (starts[r] + t) * width + h * headSize;
            own.set(fresh.subarray(from, from + headSize), to + t * headSize);
          }
      }
      row.parts[i] = own;
    });
    row.length = length;
  });
}

/**
 * Returns the name of an input of the generate graph for layer ⌊i / 2⌋: the past keys if i is even, the past values if
 * i is odd.
 */
export const pastName = (i: number): string => `past_${i % 2 === 0 ? 'key' : 'value'}.${i >> 1}`;
/**
 * Returns the name of an output of the generate graph for layer ⌊i / 2⌋: the new keys if i is even, the new values if i
 * is odd.
 */
export const newName = (i: number): string => `${i % 2 === 0 ? 'key' : 'value'}.${i >> 1}`;
