// Samples as the engine takes and returns them: token ids with a mask, and arrays of the same length for what scoring
// and the losses need. A pass holds as many packed samples as its budget allows.

/** One training sample. All arrays have the length of `ids`; position t belongs to token t (predicted from t−1). */
export interface TrainingSample {
  ids: Int32Array;
  /** 1 where the token is trained on. Position 0 is never trained on. */
  mask: Uint8Array;
  /**
   * Log-probs of the behaviour policy, log-probs of the reference policy (zeros if unused) and advantages; read where
   * mask = 1.
   */
  old_logprobs: Float32Array;
  ref_logprobs: Float32Array;
  advantages: Float32Array;
}

/** A sample with each token's weight in the mini-batch loss (loss_agg_mode). */
export interface WeightedSample extends TrainingSample {
  weights: Float32Array;
}

/**
 * A sample for the critic; arrays have the length of `ids`. The value at t is the critic's estimate before token t was
 * sampled.
 */
export interface CriticSample extends Pick<TrainingSample, 'ids' | 'mask'> {
  old_values: Float32Array;
  returns: Float32Array;
  weights: Float32Array;
}

/** Upper limits of one forward or backward pass over packed tokens. */
export interface PassBudget {
  /** Packed tokens. */
  maxTokens: number;
  /** Samples. */
  maxRows: number;
}

/** Distribution data at a sample's masked tokens; arrays have the length of its ids, 0 where mask = 0. */
export interface InspectedSample {
  logprobs: Float32Array;
  entropies: Float32Array;
  /** 1 where the token is the most likely one. */
  ranks: Float32Array;
  /** The most likely tokens, [rank][token], most likely first. */
  top: { ids: Float32Array; logprobs: Float32Array }[];
}
