// Arguments and results of the engine's `generate`: rows of token ids, and sampling options. A row's tokens depend only
// on its ids, its seed and the weights.
import type { SamplingCuts } from './sampling/host-sampler';
import type { ShownFeatures, ShownPicture } from './training-samples';

export interface SamplingOptions extends SamplingCuts {
  /** Maximum number of new tokens. */
  max_new_tokens: number;
  stop_token_ids: number[];
  /** Stop strings: a row ends with the token that completes one of them. */
  stop: string[];
  /** Maximum length of a row in tokens, prompt included; a row that reaches this length ends with `finish` 'length'. */
  max_model_len: number;
}

/** The image features that tokens show; `features` are indices of rows of `values`. */
export interface PicturedTokens extends ShownFeatures {
  /** [features, width]. Rows of a group share the array, so that equal prompts are recognised. */
  values: Float32Array;
}

export interface GenerationRow {
  /** Key of the row. The row's key-value cache is kept between turns until `release`. */
  row: string;
  /**
   * Ids to append before generating. In the first call: the prompt. In later calls: the tokens that follow the row's
   * last sampled token.
   */
  append: number[];
  /** The pictures that the ids to append show, in the order of their tokens. */
  shows?: readonly ShownPicture[];
  /** Their image features, within the engine only. The positions are those in the complete row. */
  pictures?: PicturedTokens;
  /** Seed of the row's random stream for this call; the sampled tokens do not depend on the other rows. */
  seed: number;
}

export interface GeneratedRow {
  row: string;
  /** Sampled ids, including the stop token. */
  ids: number[];
  /**
   * Log-prob of each sampled id in nats, under the distribution at the sampling temperature. Repetition penalty, top-k,
   * top-p and min-p do not affect these log-probs.
   */
  logprobs: number[];
  finish: 'stop' | 'length';
  /**
   * True if an API model's response is invalid because it was truncated or because the model refused to answer. The
   * episode then ends as unsolved.
   */
  failed?: boolean;
}
