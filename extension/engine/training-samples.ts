// Samples in the form in which the engine receives them: token ids, a mask, and further arrays of the same length that
// scoring and the losses read. The engine packs as many samples into a pass as `PassBudget` allows.

/** One training sample. All arrays have the length of `ids`; position t belongs to token t (predicted from t−1). */
export interface TrainingSample {
  ids: Int32Array;
  /** The pictures that the sample's tokens show, in the order of their tokens. */
  shows?: readonly ShownPicture[];
  /** Their image features; within the engine only. */
  pictures?: ShownFeatures;
  /** 1 for tokens that are trained on; the entry at position 0 is always 0. */
  mask: Uint8Array;
  /**
   * Log-probs of the behaviour policy, log-probs of the reference policy (zeros if unused), and advantages. Only
   * entries with mask = 1 are read.
   */
  old_logprobs: Float32Array;
  ref_logprobs: Float32Array;
  advantages: Float32Array;
}

/** Tokens to score, with those whose log-probs are wanted. */
export type BareSample = Pick<TrainingSample, 'ids' | 'mask' | 'shows'>;

/** A picture that tokens show. Its image tokens need not be consecutive: a picture in tiles has text between them. */
export interface ShownPicture {
  /** Index of its first image token. */
  at: number;
  /** Its name in the run's store of pictures. */
  picture: string;
}

/** Ids, and the pictures that they show, in the order of their tokens; `at` is an index into `ids`. */
export interface ShownIds {
  ids: number[];
  shows: ShownPicture[];
}

/** The image features that a sample's tokens show. Features are rows of a matrix that all samples of a call share. */
export interface ShownFeatures {
  /** Index of the feature that replaces the token's embedding, or −1; [length]. */
  features: Int32Array;
  /** Position of each token along time, rows and columns, [3, length]; equal for models whose positions have one axis. */
  positions: Int32Array;
}

/** A sample with each token's weight in the mini-batch loss (loss_agg_mode). */
export interface WeightedSample extends TrainingSample {
  weights: Float32Array;
}

/**
 * A sample for the critic; arrays have the length of `ids`. The value at t is the critic's estimate before token t was
 * sampled.
 */
export interface CriticSample extends BareSample {
  old_values: Float32Array;
  returns: Float32Array;
  weights: Float32Array;
}

/** Upper limits of one forward or backward pass over packed tokens. */
export interface PassBudget {
  /** Maximum packed tokens per pass. */
  maxTokens: number;
  /** Maximum samples per pass. */
  maxRows: number;
}

/**
 * Data about the actor's distribution at a sample's tokens with mask = 1. Arrays have the length of the sample's ids,
 * and are 0 where mask = 0.
 */
export interface InspectedSample {
  logprobs: Float32Array;
  entropies: Float32Array;
  /** Rank of the sample's token if the whole vocabulary is sorted by probability; rank 1 is the most likely token. */
  ranks: Float32Array;
  /**
   * One entry per rank, the most likely first: the token with this rank at each position of the sample, and its
   * log-prob.
   */
  top: { ids: Float32Array; logprobs: Float32Array }[];
}

/** How much the log-prob of a sample's tokens depends on the pictures that the sample shows. */
export interface PictureAttributions {
  /** Log-prob of the tokens with mask = 1, summed, in nats. */
  logprob: number;
  /** One map for each entry of the sample's `shows`, in its order. */
  pictures: AttributionMap[];
}

/** The cells of a picture, which cover it completely, row by row. */
export interface AttributionMap {
  rows: number;
  columns: number;
  /** One value for each cell, in nats; at least 0. */
  values: Float32Array;
}
