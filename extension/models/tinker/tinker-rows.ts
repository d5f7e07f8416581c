// Stores the ids of each row, because a Tinker server stores no rows, and ends each sampled response where it must
// stop. Requests contain only stop ids, because a server may not accept both stop ids and stop strings. Stop strings
// are found here: the response is cut after the first one. The cut does not change the distribution of the remaining
// tokens.
import { appendAll } from '../../common/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import { completesStop } from '../generation/stop-strings';
import type { SampledSequence } from './tinker-wire';

/**
 * Whether a sequence contains the log-probs of its tokens. Servers with vLLM return 0 for each missing log-prob, so
 * log-probs that are all 0 are considered missing.
 */
export const hasLogprobs = ({ tokens, logprobs }: SampledSequence): boolean =>
  logprobs?.length === tokens.length && (tokens.length === 0 || logprobs.some(logprob => logprob !== 0));

export class TinkerRows {
  /** Prompt and sampled ids of each row. */
  private readonly rows = new Map<string, number[]>();

  constructor(private readonly decode: (ids: readonly number[]) => string) {}

  /** Appends new ids to a row, and returns the list of all ids of the row. Later calls change this same list. */
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

  /**
   * Returns the number of tokens up to and including the first token that ends the response, and the reason for the
   * end.
   */
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

/** Maximum number of tokens that are searched for a stop string at each position; more than any stop string needs. */
const longestStop = 256;
