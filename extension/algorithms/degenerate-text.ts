// Detects degenerate responses by their tokens: gibberish (a rare token sampled from a nearly uniform distribution) and
// loops (a long series of tokens that were all nearly certain). Both rules follow the rollout filters of prime-rl
// (`gibberish` and `repetition`; the latter from MiniMax-M1, arXiv 2506.13585, section 3.2). They need only token ids and
// the log-probs with which the tokens were sampled.

/** The sampled tokens of one response; both arrays have one entry per token. */
export interface SampledResponse {
  ids: ArrayLike<number>;
  /** Log-probs in nats. */
  logprobs: ArrayLike<number>;
}

/** Options under `workbench.response_filters.gibberish`. */
export interface GibberishOptions {
  /** A token with a larger id is rare, because the ids of BPE tokens are ordered by frequency. */
  token_id_threshold: number;
  /** How far below −ln(vocabulary size) a log-prob must be, in nats. */
  logprob_offset: number;
}

/** Options under `workbench.response_filters.repetition`. */
export interface RepetitionOptions {
  /** Number of consecutive tokens. */
  window: number;
  /** Probability above which a token is nearly certain, 0…1. */
  prob_threshold: number;
}

/** Whether a response contains a rare token whose log-prob is below that of a uniform distribution by the offset. */
export function isGibberish(
  { ids, logprobs }: SampledResponse,
  { token_id_threshold, logprob_offset }: GibberishOptions,
  vocabSize: number,
): boolean {
  const limit = -Math.log(vocabSize) - logprob_offset;
  for (let t = 0; t < ids.length; t++) if (ids[t] > token_id_threshold && logprobs[t] < limit) return true;
  return false;
}

/** Whether a response contains `window` consecutive tokens whose probabilities are all above the threshold. */
export function isRepetitive({ logprobs }: SampledResponse, { window, prob_threshold }: RepetitionOptions): boolean {
  const limit = Math.log(prob_threshold);
  let certain = 0;
  for (let t = 0; t < logprobs.length; t++) {
    certain = logprobs[t] > limit ? certain + 1 : 0;
    if (certain >= window) return true;
  }
  return false;
}
