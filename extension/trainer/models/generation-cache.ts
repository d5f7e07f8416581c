// Where the generator's keys and values are: on the host in arrays (host-cache.ts), or on a device in tensors that never leave it
// (device-cache.ts). The generator knows rows, chunks of ids and logits; how keys and values are laid out, moved and shared is the cache's.
import type { Tensor } from '../engine/session';

/** What a cache holds of one row. Only the cache that made it takes it. */
export interface CachedRow {
  /** Tokens whose keys and values are there. */
  readonly length: number;
  /** Sampled last and not yet in the cache: it goes in front of what is appended next. */
  pending: number | null;
}

/** New ids of rows that hold the same: what they compute is computed once and shared. */
export interface Chunk {
  ids: readonly number[];
  rows: readonly CachedRow[];
}

/** Rows that are decoded together. */
export interface DecodingBatch {
  /** Takes rows in at the end. */
  enter(rows: readonly CachedRow[]): Promise<void>;
  /** Appends a token to each row; the logits of what follows, [rows, vocab], are the caller's to dispose of. */
  step(tokens: readonly number[]): Promise<Tensor>;
  /** A row is done; the last row takes its place. */
  leave(r: number): void;
  /** Rows that have left hold what they computed, so that they may go on while others are still in it. */
  settle(): Promise<void>;
  /** No row is in it any more; the rows that were hold what they computed. It may be entered again. */
  close(): Promise<void>;
}

export interface GenerationCache {
  /** An empty row. */
  row(): CachedRow;
  /** Appends the chunks; the logits after each, one row for every row of every chunk in order, are the caller's to dispose of. */
  prefill(chunks: readonly Chunk[]): Promise<Tensor>;
  batch(): DecodingBatch;
  /** Gives up what a row holds. */
  forget(row: CachedRow): void;
}

/** Runs the generate graph with the parameters and these feeds. */
export type RunGenerate = (feeds: Readonly<Record<string, Tensor>>) => Promise<Record<string, Tensor>>;
