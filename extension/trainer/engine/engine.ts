// Interface between the training loop and the engine. The engine runs in a worker thread (onnxruntime's run() blocks),
// so every call is asynchronous and every argument is structured-cloneable. Rows are episodes; token ids are plain
// int32. Invariant: the engine takes and returns token ids; it decodes text only to detect stop strings.
import type { LossAggMode, PolicyLossSettings } from '../algorithms/policy-loss-options';
import type { Device } from './devices';
import type { FloatType } from './graph';
import type { SamplingCuts } from './sampling';
import type { Provider } from './session';

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

export interface PolicyLossOptions extends PolicyLossSettings {
  temperature: number;
}

export interface OptimizerOptions {
  lr: number;
  betas: [number, number];
  eps: number;
  weight_decay: number;
  grad_clip: number;
}

/**
 * Metrics under RAGEN's keys, without prefix: pg_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl, entropy, kl_loss,
 * grad_norm, lr.
 */
export type UpdateMetrics = Record<string, number>;

export interface CriticLossOptions {
  /** Values are clipped to ± this around the old values. */
  cliprange_value: number;
  loss_agg_mode: LossAggMode;
}

/** Terms of the loss, each with its sign and weight: the surrogate, the entropy bonus and the KL penalty. */
export type LossPart = 'task' | 'entropy' | 'kl';

/** The gradient of one loss part over a bucket of mini-batches. */
export interface PartGradient {
  /** Global gradient norm, averaged over the mini-batches. */
  norm: number;
  /**
   * ‖mean gradient‖² / variance of that mean, both estimated from slices of the mini-batches; null if there is one
   * slice.
   */
  snr: number | null;
}

export interface GradientAnalysis {
  /** The parts that are present in the loss. */
  parts: LossPart[];
  /** For each bucket, the gradients of the parts in that order, and the loss metrics averaged over its mini-batches. */
  buckets: { gradients: PartGradient[]; metrics: UpdateMetrics }[];
  /**
   * Cosines between the mean gradients of bucket a's part p and bucket b's part q, at [a·parts + p][b·parts + q]; null
   * if one is zero. Exact up to 2²⁰ trained parameters, beyond that estimated within about 0.001.
   */
  cosines: (number | null)[][];
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

/** Low-rank adapters; `targets` as in PEFT's target_modules. */
export interface AdapterOptions {
  rank: number;
  alpha: number;
  dropout: number;
  targets: string | readonly string[];
}

/** Storage format of a frozen base. */
export type BaseQuantization = 'none' | 'int8';

export interface LoadOptions {
  /** Model folder in Hugging Face format. */
  modelFolder: string;
  /** Folder of an initial adapter in PEFT format; null for none. */
  adapterFolder: string | null;
  device: Device;
  /** User-facing name of the device option in messages; defaults to workbench.device. */
  deviceKey?: string;
  threads: number;
  /** Train adapters over the frozen base; null trains all weights. The options of an adapter folder take precedence. */
  lora: AdapterOptions | null;
  /** Rollouts use 8-bit matmuls; requires a frozen base. */
  rolloutQuantization: BaseQuantization;
  /** The frozen base is kept in 8 bits while adapters are trained. */
  baseQuantization: BaseQuantization;
  /** Precision of matmuls with weights; defaults to float32. */
  precision?: FloatType;
  /** Recompute activations in the backward pass instead of keeping them. */
  checkpointed: boolean;
  /**
   * Folder of the reference policy's weights, of the same architecture; null for none. With adapters, the base is the
   * reference policy.
   */
  referenceFolder: string | null;
  /** Storage format of the actor's and critic's optimizer moments; defaults to float32. */
  moments?: { actor: MomentFormat; critic: MomentFormat };
  /**
   * Create a critic: a copy of the decoder with a value head, or with adapters a value head and separate adapters over
   * the shared base.
   */
  critic: boolean;
  /** Seed of new adapters and of the critic's new head. */
  seed: number;
  /** Maximum sequence length; null for the model's limit. */
  maxPositions: number | null;
  /** Folder for files derived from models, such as 8-bit bases. */
  cacheFolder: string;
}

export interface LoadedModel {
  /** Number of all parameters, and of the trained ones. */
  parameters: number;
  trained: number;
  maxPositions: number;
  /** Number of tokens the head has a logit for. */
  vocabSize: number;
  /** The provider the model runs on. */
  provider: Provider;
  /** Findings of the device test, in one line; null if none was tested. */
  deviceCheck: string | null;
  /** The adapter's options, if there is one. */
  lora: AdapterOptions | null;
}

/** Storage format of AdamW's moments. */
export type MomentFormat = 'float32' | 'int8';

/**
 * AdamW state of one network: moments with the length of its flat weights, or bytes in blocks of 256 with one scale
 * each (engine/byte-moments.ts).
 */
export type MomentState =
  | { format: 'float32'; step: number; m: Float32Array; v: Float32Array }
  | { format: 'int8'; step: number; m: Int8Array; v: Uint8Array; mScale: Float32Array; vScale: Float32Array };

/** Engine state in a checkpoint, except the actor's weights, which are stored by name. */
export interface EngineState {
  actor: MomentState;
  critic?: MomentState & { weights: Float32Array };
}

export interface NamedTensor {
  name: string;
  dims: number[];
  data: Float32Array;
}

export type WhichPolicy = 'actor' | 'reference';

/** Distribution data at a sample's masked tokens; arrays have the length of its ids, 0 where mask = 0. */
export interface InspectedSample {
  logprobs: Float32Array;
  entropies: Float32Array;
  /** 1 where the token is the most likely one. */
  ranks: Float32Array;
  /** The most likely tokens, [rank][token], most likely first. */
  top: { ids: Float32Array; logprobs: Float32Array }[];
}

/** The engine as used by the training loop. Rows and samples are plain data; the engine packs samples into passes. */
export interface Engine {
  load(options: LoadOptions): Promise<LoadedModel>;
  /**
   * Calls may overlap: new rows join the running generation, and each call resolves independently. A row may be in only
   * one call at a time.
   */
  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
  /** Drops rows after the running calls that use them. */
  release(rows: string[]): Promise<void>;
  /** Returns log-probs and entropies per sample (0 where mask = 0). */
  score(
    which: WhichPolicy,
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
  ): Promise<{ logprobs: Float32Array[]; entropies: Float32Array[] }>;
  /** Returns the actor's distribution data at the masked tokens, with the `top` most likely tokens of each. */
  inspect(
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
    top: number,
  ): Promise<InspectedSample[]>;
  /**
   * Returns the actor's summed log-probs of text i after prompt j, [texts][prompts], in nats. Each distinct prompt is
   * processed once, regardless of the number of texts. Prompts and texts must not be empty.
   */
  crossScore(
    prompts: Int32Array[],
    texts: Int32Array[],
    budget: PassBudget,
    temperature: number,
  ): Promise<Float64Array[]>;
  /** Runs one optimizer step of the actor on a mini-batch; `seed` seeds the adapters' dropout. */
  update(
    samples: WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<UpdateMetrics>;
  /**
   * Computes the gradients of the parts of the actor's loss over buckets of mini-batches: [bucket][mini-batch][sample].
   * No weights change.
   */
  analyseGradients(
    buckets: WeightedSample[][][],
    budget: PassBudget,
    loss: PolicyLossOptions,
    seed: number,
  ): Promise<GradientAnalysis>;
  /** Returns the critic's values per sample (0 where mask = 0). */
  values(samples: Pick<TrainingSample, 'ids' | 'mask'>[], budget: PassBudget): Promise<Float32Array[]>;
  updateCritic(
    samples: CriticSample[],
    budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics>;
  /** Runs one optimizer step on the mean cross-entropy of the masked tokens, and returns the loss. */
  trainSupervised(
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<number>;
  /**
   * Computes and discards the gradient of the longest possible pass, so that insufficient memory shows before the first
   * step.
   */
  tryLongest(budget: PassBudget, length: number): Promise<{ tokens: number; seconds: number }>;
  /**
   * Saves the state that `rollBack` restores. Weights and moments are copied only for at most `undoParameters` trained
   * parameters (models/engine-undo.ts).
   */
  remember(): Promise<void>;
  /**
   * Restores weights and moments to the last `remember`; returns false if optimizer steps were made since and no copy
   * was taken.
   */
  rollBack(): Promise<boolean>;
  state(): Promise<EngineState>;
  restore(state: EngineState): Promise<void>;
  /** Restores only the critic's weights from a checkpoint, for callers that only need values. */
  restoreCritic(weights: Float32Array): Promise<void>;
  /** Returns the actor's trained parameters under Hugging Face names: all weights, or the adapter factors. */
  parameters(): Promise<NamedTensor[]>;
}
