// Stores the token ids of each row, because a Tinker server stores no rows. Also searches each sampled response for
// stop strings, and cuts the response after the first one. Requests contain stop ids but no stop strings, because a
// server may not accept both in one request. The cut does not change the distribution of the remaining tokens.
import { appendAll } from '../../common/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import { completesStop } from '../generation/stop-strings';
import type { SampledSequence } from './tinker-wire';

/**
 * Whether a sequence contains the log-probs of its tokens. Servers with vLLM return 0 for each missing log-prob. If all
 * log-probs are 0, they are therefore considered missing.
 */
export const hasLogprobs = ({ tokens, logprobs }: SampledSequence): boolean =>
  logprobs?.length === tokens.length && (tokens.length === 0 || logprobs.some(logprob => logprob !== 0));

export class TinkerRows {
  /** Prompt and sampled ids of each row. */
  private readonly rows = new Map<string, number[]>();

  constructor(private readonly decode: (ids: readonly number[]) => string) {}

  /** Appends new ids to a row, and returns the list of all ids of the row. Later calls change the returned list. */
  append({ row, append }: GenerationRow): number[] {
    const ids = this.rows.get(row) ?? [];
    appendAll(ids, append);
    this.rows.set(row, ids);
    return ids;
  }

  /**
   * Appends a sampled response to its row, and returns the response with its log-probs.
   * @throws NotFiniteError if a log-prob is not finite
   */
  accept(row: string, { tokens, logprobs }: SampledSequence, sampling: SamplingOptions): GeneratedRow {
    if (!isFinite(logprobs))
      throw new NotFiniteError(
        `engine: the server sampled with log-probs that are not finite (row ${row}), because the model's weights have diverged: resume from an earlier checkpoint with a lower learning rate`,
      );
    const { count, finish } = this.end(tokens, sampling);
    const ids = tokens.slice(0, count);
    appendAll(this.rows.get(row)!, ids);
    return { row, ids, logprobs: logprobs.slice(0, count), finish };
  }

  release(rows: readonly string[]): void {
    for (const row of rows) this.rows.delete(row);
  }

  /** Returns how many tokens belong to the response, including the token that ends it, and why the response ends. */
  private end(
    tokens: readonly number[],
    { stop, stop_token_ids }: SamplingOptions,
  ): { count: number; finish: 'stop' | 'length' } {
    const mayStop = stop.length > 0 && stop.some(text => this.decode(tokens).includes(text));
    for (let count = 1; count <= tokens.length; count++)
      if (
        stop_token_ids.includes(tokens[count - 1]) ||
        (mayStop && completesStop(tokens.slice(Math.max(0, count - longestStop), count), stop, this.decode))
      )
        return { count, finish: 'stop' };
    return { count: tokens.length, finish: 'length' };
  }
}

const isFinite = (logprobs: SampledSequence['logprobs']): logprobs is number[] =>
  logprobs?.every(Number.isFinite) ?? false;

/**
 * At each position, stop strings are searched for in at most this many of the latest tokens. Every stop string has
 * fewer tokens.
 */
const longestStop = 256;
