// The rows of an engine whose server keeps none: each row's ids, and what a sampled response becomes. The server is
// asked to stop at ids; stop strings, of which a server may not take both, are found here and cut the response, which
// does not change the distribution of what is kept.
import { appendAll } from '../../common/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import { completesStop } from '../generation/stop-strings';
import type { SampledSequence } from './tinker-wire';

/**
 * Whether a sequence has the log-probs of its tokens. Servers with vLLM fill missing ones with 0, the log-prob of a token
 * that is certain.
 */
export const hasLogprobs = ({ tokens, logprobs }: SampledSequence): boolean =>
  logprobs?.length === tokens.length && (tokens.length === 0 || logprobs.some(logprob => logprob !== 0));

export class TinkerRows {
  /** Prompt and sampled ids of each row. */
  private readonly rows = new Map<string, number[]>();

  constructor(private readonly decode: (ids: readonly number[]) => string) {}

  /** Appends a row's new ids, and returns all its ids. The list changes with the row's next ids. */
  append({ row, append }: GenerationRow): number[] {
    const ids = this.rows.get(row) ?? [];
    appendAll(ids, append);
    this.rows.set(row, ids);
    return ids;
  }

  /**
   * Appends a sampled response with log-probs to its row and returns it.
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

  /** The number of tokens up to the first one that ends the response, and why it ends. */
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

/** Maximum tokens of a stop string, with a margin; bounds the ids that are copied for each position. */
const longestStop = 256;
