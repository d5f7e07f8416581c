// Interface of the generator's key-value cache. One implementation uses arrays on the host (host-cache.ts), the other
// uses tensors that stay on a device (device-cache.ts). The generator passes rows and chunks of ids, and receives
// logits. Layout, copying and sharing of keys and values are internal to the cache.
import type { PicturedTokens } from '../../engine/generation-calls';
import type { Tensor } from '../../engine/session/session';

/** Cached data of one row. All other fields of a row are private to the cache that created the row. */
export interface CachedRow {
  /** Number of cached tokens. */
  readonly length: number;
  /** Position of the next token. Less than `length` after a picture whose tokens share positions. */
  readonly nextPosition: number;
  /** Last sampled token, which is not cached yet; the next append starts with it. */
  pending: number | null;
}

/**
 * New ids that are appended to all of `rows`; these rows have equal content. The model computes the ids once for all
 * rows.
 */
export interface Chunk {
  ids: readonly number[];
  /** What the ids show, if they show pictures. */
  pictures?: PicturedTokens;
  rows: readonly CachedRow[];
}

/** Rows that are decoded in one batch. */
export interface DecodingBatch {
  /** Adds rows at the end. */
  enter(rows: readonly CachedRow[]): Promise<void>;
  /** Appends one token to each row and returns the next-token logits [rows, vocab], which the caller owns. */
  step(tokens: readonly number[]): Promise<Tensor>;
  /** Removes the finished row at index r; the last row moves to this index. */
  releaseRow(r: number): void;
  /**
   * Writes the data of removed rows back to the cache. Other calls can then use these rows while the batch continues.
   */
  settle(): Promise<void>;
  /** Empties the batch and writes the data of its rows back to the cache. The batch can be reused. */
  close(): Promise<void>;
}

export interface GenerationCache {
  /** Returns an empty row. */
  row(): CachedRow;
  /**
   * Appends the chunks. Returns one row of logits per cached row: the logits after the last id of the row's chunk. The
   * rows are in the order of the chunks. The caller owns the logits.
   */
  prefill(chunks: readonly Chunk[]): Promise<Tensor>;
  batch(): DecodingBatch;
  /** Frees a row's cached data. */
  forget(row: CachedRow): void;
}

/** Runs the generate graph with the parameters and the given feeds. */
export type RunGenerate = (feeds: Readonly<Record<string, Tensor>>) => Promise<Record<string, Tensor>>;
