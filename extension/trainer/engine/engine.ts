// What the trainer's loop asks of the engine. The engine itself runs in a worker thread (onnxruntime's run() blocks), so every
// call is asynchronous and every argument survives a structured clone. Shapes: rows are episodes; token ids are plain int32.
// Invariant: ids in, ids out; the engine reads text only to see whether a stop string was completed.

export interface SamplingOptions {
  temperature: number;
  /** Nucleus: smallest set of tokens whose probability reaches top_p; 1 = off. */
  top_p: number;
  /** −1 or 0 = off. */
  top_k: number;
  /** Tokens less likely than this share of the likeliest are left out; 0 = off. */
  min_p: number;
  /** Logits of tokens that occurred before are divided by it where positive, multiplied where negative; 1 = off. */
  repetition_penalty: number;
  /** Greedy when false. */
  do_sample: boolean;
  /** At most so many new tokens. */
  max_new_tokens: number;
  stop_token_ids: number[];
  /** A row also ends with the token that completes one of these texts. */
  stop: string[];
  /** A row ends (finish 'length') when its whole sequence reaches this many tokens. */
  max_model_len: number;
}

export interface GenerationRow {
  /** Key of the row; its keys and values stay cached between turns until `release`. */
  row: string;
  /** Ids to append before generating: the prompt at first, later what follows the row's last sampled token. */
  append: number[];
  /** Seed of the row's own random stream for this call: the same tokens whatever the batch around it. */
  seed: number;
}

export interface GeneratedRow {
  row: string;
  /** Sampled ids, the stop token included. */
  ids: number[];
  /** Natural-log probability of each sampled id under the distribution it was drawn from before top-p/top-k cuts, at the given temperature. */
  logprobs: number[];
  finish: 'stop' | 'length';
  /** The answer is none (a model behind an API was cut or refused): its episode ends with it, unsolved. */
  failed?: boolean;
}

/** One training sample. All arrays have the length of `ids`; position t speaks of token t (predicted from t−1). */
export interface TrainingSample {
  ids: Int32Array;
  /** 1 where the token is trained on. Position 0 is never trained. */
  mask: Uint8Array;
  /** Behaviour log-probs, reference log-probs (zeros when unused), advantages; read where mask = 1. */
  old_logprobs: Float32Array;
  ref_logprobs: Float32Array;
  advantages: Float32Array;
}

export interface PolicyLossOptions {
  /** The clipped surrogate by token (vanilla; also where left out), or the losses of GSPO or CISPO. */
  policy_loss?: { loss_mode: 'vanilla' | 'gspo' | 'cispo' };
  clip_ratio_low: number;
  clip_ratio_high: number;
  /** Dual clip constant c > 1. */
  clip_ratio_c: number;
  entropy_coeff: number;
  use_kl_loss: boolean;
  kl_loss_coef: number;
  kl_loss_type: 'kl' | 'k1' | 'abs' | 'mse' | 'k2' | 'low_var_kl' | 'k3';
  loss_agg_mode: 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';
  temperature: number;
}

export interface OptimizerOptions {
  lr: number;
  betas: [number, number];
  eps: number;
  weight_decay: number;
  grad_clip: number;
}

/** Metrics by RAGEN's keys, without prefix: pg_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl, entropy, kl_loss, grad_norm, lr. */
export type UpdateMetrics = Record<string, number>;

export interface CriticLossOptions {
  /** Values are clipped to ± this around the old ones. */
  cliprange_value: number;
  loss_agg_mode: PolicyLossOptions['loss_agg_mode'];
}

/** The surrogate, the entropy bonus and the KL penalty, each with its sign and weight. */
export type LossPart = 'task' | 'entropy' | 'kl';

/** The gradient of one part of the loss over a bucket of mini-batches. */
export interface PartGradient {
  /** Global norm of the mini-batches' gradients, averaged over them. */
  norm: number;
  /** ‖mean gradient‖² over the variance of that mean, both estimated from slices of the mini-batches; null where there is one slice. */
  snr: number | null;
}

export interface GradientAnalysis {
  /** The parts that the loss has. */
  parts: LossPart[];
  /** For each bucket, the parts in that order, and the loss's metrics averaged over its mini-batches. */
  buckets: { gradients: PartGradient[]; metrics: UpdateMetrics }[];
  /**
   * Cosines between the mean gradients of bucket a's part p and bucket b's part q, at [a·parts + p][b·parts + q]; null where one is zero.
   * Exact up to 2²⁰ trained parameters, from there on estimated within about 0.001.
   */
  cosines: (number | null)[][];
}

/** A sample with each token's share of its mini-batch's loss (loss_agg_mode). */
export interface WeightedSample extends TrainingSample {
  weights: Float32Array;
}

/** A sample for the critic; arrays have the length of `ids`. The value at t is the critic's estimate before token t was sampled. */
export interface CriticSample extends Pick<TrainingSample, 'ids' | 'mask'> {
  old_values: Float32Array;
  returns: Float32Array;
  weights: Float32Array;
}

/** What a pass over packed tokens may hold at most. */
export interface PassBudget {
  /** Packed tokens. */
  maxTokens: number;
  /** Samples. */
  maxRows: number;
}

/** Low-rank adapters; `targets` as PEFT's target_modules. */
export interface AdapterOptions {
  rank: number;
  alpha: number;
  dropout: number;
  targets: string | readonly string[];
}

export interface LoadOptions {
  /** Folder in Hugging Face's form. */
  modelFolder: string;
  /** Folder of an adapter in PEFT's form to begin with; null for none. */
  adapterFolder: string | null;
  device: 'auto' | 'cpu' | 'webgpu' | 'cuda';
  /** What the user calls the device; workbench.device where nothing is said. */
  deviceKey?: string;
  threads: number;
  /** Train adapters over the frozen base; null trains all weights. An adapter folder's own options go before these. */
  lora: AdapterOptions | null;
  /** Rollouts multiply bytes instead of floats; needs a frozen base. */
  rolloutQuantization: 'none' | 'int8';
  /** The frozen base is held in 8 bits while it trains adapters. */
  baseQuantization: 'none' | 'int8';
  /** What products with weights are computed in; float32 where nothing is said. */
  precision?: 'float32' | 'float16';
  /** Compute activations again on the way back instead of keeping them. */
  checkpointed: boolean;
  /** Folder of the reference policy's weights, of the same architecture; null for none. With adapters it is the base itself. */
  referenceFolder: string | null;
  /** How the optimizers of actor and critic hold their moments; in float32 where nothing is said. */
  moments?: { actor: MomentFormat; critic: MomentFormat };
  /** Make a critic: a copy of the decoder with a value head, or a value head and adapters of its own over the shared base. */
  critic: boolean;
  /** Seed of new adapters and of the critic's new head. */
  seed: number;
  /** No sequence will be longer; null for the model's limit. */
  maxPositions: number | null;
  /** Folder for files made from models, such as 8-bit bases. */
  cacheFolder: string;
}

export interface LoadedModel {
  /** All parameters, and those that are trained. */
  parameters: number;
  trained: number;
  maxPositions: number;
  /** Tokens that the head has a logit for. */
  vocabSize: number;
  /** Where it runs. */
  provider: 'cpu' | 'webgpu' | 'cuda';
  /** What trying devices showed, in one line; null where none was tried. */
  deviceCheck: string | null;
  /** The adapter's options where there is one. */
  lora: AdapterOptions | null;
}

/** How AdamW's moments are held. */
export type MomentFormat = 'float32' | 'int8';

/** AdamW's state of one network: moments as long as its flat weights, or bytes in blocks of 256 with a scale each (engine/byte-moments.ts). */
export type MomentState =
  | { format: 'float32'; step: number; m: Float32Array; v: Float32Array }
  | { format: 'int8'; step: number; m: Int8Array; v: Uint8Array; mScale: Float32Array; vScale: Float32Array };

/** What a checkpoint holds of the engine besides the actor's weights, which are stored by name. */
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

/** The distributions behind a sample's masked tokens; arrays have the length of its ids, 0 where mask = 0. */
export interface InspectedSample {
  logprobs: Float32Array;
  entropies: Float32Array;
  /** 1 where no token was likelier. */
  ranks: Float32Array;
  /** The likeliest tokens, [which][token], likeliest first. */
  top: { ids: Float32Array; logprobs: Float32Array }[];
}

/** The engine as the training loop sees it. Rows and samples are plain data; how samples are packed into passes is the engine's. */
export interface Engine {
  load(options: LoadOptions): Promise<LoadedModel>;
  /** Calls overlap: rows join those that are being generated, and each call is answered by itself. A row is in one of them at a time. */
  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
  /** Forgets rows, after the calls that have them in hand. */
  release(rows: string[]): Promise<void>;
  /** Log-probs and entropies per sample (0 where mask = 0). */
  score(
    which: WhichPolicy,
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
  ): Promise<{ logprobs: Float32Array[]; entropies: Float32Array[] }>;
  /** What the actor's distributions are where tokens stand, with the `top` likeliest tokens of each. */
  inspect(
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
    top: number,
  ): Promise<InspectedSample[]>;
  /**
   * Sums of the actor's log-probs of the tokens of text i after prompt j, [texts][prompts], in nats. Each distinct prompt is read once,
   * whatever the number of texts. Prompts and texts are not empty.
   */
  crossScore(
    prompts: Int32Array[],
    texts: Int32Array[],
    budget: PassBudget,
    temperature: number,
  ): Promise<Float64Array[]>;
  /** One optimizer step of the actor on a mini-batch; `seed` is that of the adapters' dropout. */
  update(
    samples: WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<UpdateMetrics>;
  /** Gradients of the parts of the actor's loss over buckets of mini-batches: [bucket][mini-batch][sample]. Nothing is applied. */
  analyseGradients(
    buckets: WeightedSample[][][],
    budget: PassBudget,
    loss: PolicyLossOptions,
    seed: number,
  ): Promise<GradientAnalysis>;
  /** The critic's values per sample (0 where mask = 0). */
  values(samples: Pick<TrainingSample, 'ids' | 'mask'>[], budget: PassBudget): Promise<Float32Array[]>;
  updateCritic(
    samples: CriticSample[],
    budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics>;
  /** One optimizer step on the mean cross-entropy of the masked tokens. */
  imitate(
    samples: Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<number>;
  /** Takes the gradient of the longest pass that can occur and throws it away, so that too little memory shows before the first step. */
  tryLongest(budget: PassBudget, length: number): Promise<{ tokens: number; seconds: number }>;
  /** Begins what `rollBack` undoes. Weights and moments are copied of at most `undoParameters` trained parameters (models/engine-undo.ts). */
  remember(): Promise<void>;
  /** Has weights and moments as they were at `remember`; false where optimizer steps were made since and no copy was taken. */
  rollBack(): Promise<boolean>;
  state(): Promise<EngineState>;
  restore(state: EngineState): Promise<void>;
  /** Gives the critic a checkpoint's weights alone, for whoever only asks for values. */
  restoreCritic(weights: Float32Array): Promise<void>;
  /** The actor's trained parameters by Hugging Face's names: all weights, or the adapters' factors. */
  parameters(): Promise<NamedTensor[]>;
}
