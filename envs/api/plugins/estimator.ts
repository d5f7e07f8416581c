// The interface of advantage estimators. The built-in estimators implement it, and so does a plug-in: a file whose
// default export is created by `defineEstimator` and that `algorithm.adv_estimator` names. Invariant: `estimate` is a
// function of its arguments, so that a resumed run computes the same advantages.

/** One sequence of tokens. Arrays have one entry per token, and `mask` marks the tokens on which the policy is trained. */
export interface TokenSequence {
  /** Prompt group of the sequence. */
  group: number;
  /** By default, the score of the episode at the last sampled token; with `use_turn_scores`, one reward per turn. */
  rewards: Float32Array;
  mask: Uint8Array;
  /** 1 at tokens for which an advantage is estimated: by default, all from the first to the last sampled token. */
  advantageMask: Uint8Array;
  /** Position of the last sampled token of each turn, ascending. */
  turnEnds: readonly number[];
  /** Log-prob of each token under the policy before the update, in nats. */
  logprobs: Float32Array;
  /** Values of the critic; zeros without a critic. Only `gae` has a critic. */
  values: Float32Array;
  /** Sum of the squared probabilities over the vocabulary; zeros except for `tir_optimal_token_baseline`. */
  squares: Float32Array;
  /** Score of the group's greedy episode; 0 except for `remax`. */
  baseline: number;
}

/**
 * The batch of a step. A sample is an episode or, with a windowed context, a turn. `scores`, `groups`, `episodes` and
 * `masks` have one entry per sample.
 */
export interface EstimatorBatch {
  /** Sum of the rewards of each sample. */
  scores: Float64Array;
  /** Prompt group of each sample; equal numbers are the same group. */
  groups: Int32Array;
  /** Number of each sample's episode; samples of one episode have the same number. */
  episodes: Int32Array;
  /** 1 at the tokens on which the policy is trained. */
  masks: readonly Uint8Array[];
  /** One sequence per sample; with `agent_proxy.use_turn_scores`, one per episode. */
  sequences: readonly TokenSequence[];
}

/** Settings of the configuration that estimators use, and the seed of the step. */
export interface EstimatorSettings {
  /** `algorithm.gamma`, `algorithm.lam` and `algorithm.high_level_gamma`. */
  gamma: number;
  lam: number;
  high_level_gamma: number;
  /** `workbench.turn_gae`. */
  turn_gae: 'off' | 'first' | 'last';
  /** `workbench.high_level_lam`, or `lam` if it is null. */
  high_level_lam: number;
  turn_value: 'end' | 'start';
  norm_adv_by_std_in_grpo: boolean;
  /** Whether `workbench.compat` is `ragen`, which finds turn ends by rewards other than 0. */
  compat_ragen: boolean;
  /** Number of the step, from 1. */
  step: number;
  /** Seed for random numbers of this step; it depends on `seed.train` and the step only. */
  seed: number;
}

/**
 * Advantages: one per sample (`samples`; each trained token gets that of its sample), one per turn of each sequence
 * (`turns`), or one per token of each sequence (`tokens`). All numbers are finite.
 */
export type Estimate =
  | { samples: ArrayLike<number> }
  | { turns: readonly ArrayLike<number>[] }
  | {
      tokens: readonly Float32Array[];
      /** Training targets of the critic, one per token; only for `gae`. */
      returns?: readonly Float32Array[];
      /** 1 at tokens at which the critic is trained; by default, all tokens for which advantages are estimated. */
      targets?: readonly Uint8Array[];
    };

/** An advantage estimator. */
export interface Estimator {
  estimate(batch: EstimatorBatch, settings: EstimatorSettings): Estimate;
}

/** The default export of an estimator's file. */
export interface EstimatorPlugin extends Estimator {
  readonly kind: 'estimator';
  /** Name in messages. */
  name: string;
}

/** Declares an advantage estimator. */
export function defineEstimator(definition: Omit<EstimatorPlugin, 'kind'>): EstimatorPlugin {
  return { kind: 'estimator', ...definition };
}
