// Interface of the generator's key-value cache: on the host in arrays (host-cache.ts), or on a device in tensors that
// never leave it (device-cache.ts). The generator handles rows, chunks of ids and logits; the cache handles the layout,
// movement and sharing of keys and values.
import type { Tensor } from '../../engine/session/session';

/** Cached data of one row, opaque to other caches. */
export interface CachedRow {
  /** Number of cached tokens. */
  readonly length: number;
  /** The last sampled token, not yet cached: it is prepended to the next append. */
  pending: number | null;
}

/** New ids of rows with identical content, computed once and shared. */
export interface Chunk {
  ids: readonly number[];
  rows: readonly CachedRow[];
}

/** Rows that are decoded together. */
export interface DecodingBatch {
  /** Adds rows at the end. */
  enter(rows: readonly CachedRow[]): Promise<void>;
  /** Appends one token to each row and returns the next-token logits [rows, vocab], owned by the caller. */
  step(tokens: readonly number[]): Promise<Tensor>;
  /** Removes a finished row; the last row moves to its index. */
  releaseRow(r: number): void;
  /** Writes back the rows that have left, so that they can continue while others are still in the batch. */
  settle(): Promise<void>;
  /** Empties the batch and writes back the rows that were in it. The batch can be reused. */
  close(): Promise<void>;
}

export interface GenerationCache {
  /** Returns an empty row. */
  row(): CachedRow;
  /**
   * Appends the chunks and returns the logits after each, one logits row per cached row in chunk order, owned by the
   * caller.
   */
  prefill(chunks: readonly Chunk[]): Promise<Tensor>;
  batch(): DecodingBatch;
  /** Frees a row's cached data. */
  forget(row: CachedRow): void;
}

/** Runs the generate graph with the parameters and these feeds. */
export type RunGenerate = (feeds: Readonly<Record<string, Tensor>>) => Promise<Record<string, Tensor>>;
