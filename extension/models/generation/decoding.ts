// Types of the generator: a call, a row that is being decoded, and the watcher of a row. Rows of several calls are
// decoded in one batch; a call is resolved when all its rows are finished.
import type { GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { RandomStream } from '../../engine/sampling/random-stream';
import type { CachedRow } from './generation-cache';

/** A pending call. */
export interface Call {
  decodings: Decoding[];
  sampling: SamplingOptions;
  onTokens?: (sampled: number) => void;
  onRows?: (rows: readonly string[]) => void;
  answer(): void;
  fail(error: unknown): void;
  /** Resolves when the call is finished. */
  done: Promise<unknown>;
}

/** A row of a call while its tokens are decoded. */
export interface Decoding {
  request: GenerationRow;
  cache: CachedRow;
  stream: RandomStream;
  /** Number of tokens of the row before the first token sampled in this call. */
  prefix: number;
  ids: number[];
  logprobs: number[];
  finish: 'stop' | 'length' | null;
  /** Number of sampled tokens that were reported to the watcher. */
  reported: number;
}

/** Watcher of a row. Receives the sampled tokens of the row in order, several tokens per call. */
export interface RowWatch {
  row: string;
  onTokens(ids: number[], logprobs: number[]): void;
}
