// What a call of the engine's `generate` takes and returns: rows of token ids, and how tokens are sampled. A row's
// tokens depend only on its ids, its seed and the weights.
import type { SamplingCuts } from './sampling/sampling';

export interface SamplingOptions extends SamplingCuts {
  /** Maximum number of new tokens. */
  max_new_tokens: number;
  stop_token_ids: number[];
  /** A row also ends with the token that completes one of these strings. */
  stop: string[];
  /** A row ends (finish 'length') when its whole sequence reaches this many tokens. */
  max_model_len: number;
}

export interface GenerationRow {
  /** Key of the row; its key-value cache is kept between turns until `release`. */
  row: string;
  /** Ids to append before generating: first the prompt, later the tokens after the row's last sampled token. */
  append: number[];
  /** Seed of the row's random stream for this call; the sampled tokens do not depend on the rest of the batch. */
  seed: number;
}

export interface GeneratedRow {
  row: string;
  /** Sampled ids, including the stop token. */
  ids: number[];
  /**
   * Natural-log probability of each sampled id under the sampling distribution at the given temperature, before
   * top-p/top-k cuts.
   */
  logprobs: number[];
  finish: 'stop' | 'length';
  /** The response is invalid (an API model's response was truncated or refused): the episode ends as unsolved. */
  failed?: boolean;
}
