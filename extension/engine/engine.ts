// Interface between the training loop and the engine. The engine runs in a worker thread because onnxruntime's run()
// blocks, so every call is asynchronous and every argument is structured-cloneable. Rows are episodes; token ids are
// plain int32. Invariant: arguments and results are token ids; the engine decodes tokens to text only to detect stop
// strings. The types of arguments and results are in load-options.ts, generation-calls.ts, training-samples.ts and
// loss-options.ts.
import type { LoadOptions, LoadedModel } from './load-options';
import type { GenerationRow, SamplingOptions, GeneratedRow } from './generation-calls';
import type {
  BareSample,
  PassBudget,
  InspectedSample,
  PictureAttributions,
  ShownPicture,
  WeightedSample,
  CriticSample,
} from './training-samples';
import type {
  PolicyLossOptions,
  OptimizerOptions,
  UpdateMetrics,
  GradientAnalysis,
  CriticLossOptions,
} from './loss-options';

/**
 * AdamW moments of one network: float32 arrays with one entry per weight, or bytes in blocks of 256 with one scale per
 * block (engine/optimizer/byte-moments.ts).
 */
export type MomentState =
  | { format: 'float32'; step: number; m: Float32Array; v: Float32Array }
  | { format: 'int8'; step: number; m: Int8Array; v: Uint8Array; mScale: Float32Array; vScale: Float32Array };

/** State of an engine on this machine, without the actor's trained weights, which `Engine.parameters` returns. */
export interface LocalState {
  actor: MomentState;
  critic?: MomentState & { weights: Float32Array };
}

/** State of an engine that runs on a server; the server keeps the weights and the optimizer state. */
export interface ServerState {
  server: {
    /** Address under which the server stores the saved state. */
    path: string;
    /** URL of the server, and the server's name for the base model. */
    url: string;
    base: string;
    /** Number of optimizer steps made so far. */
    updates: number;
    /** The saved state of the critic, if the run has one. */
    critic?: { path: string; updates: number };
  };
}

/** The engine's state, as one part of a checkpoint. */
export type EngineState = LocalState | ServerState;

export interface NamedTensor {
  name: string;
  dims: number[];
  data: Float32Array;
}

export type WhichPolicy = 'actor' | 'reference';

/** The engine's calls. Rows and samples are plain data; the engine packs samples into forward and backward passes. */
export interface Engine<State extends EngineState = EngineState> {
  load(options: LoadOptions): Promise<LoadedModel>;
  /**
   * Samples a response for each row. Calls may overlap: new rows join the running generation, and each call resolves
   * independently. A row may be in only one call at a time.
   */
  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
  /** Waits for the running calls that use the rows, then frees the cached data of the rows. */
  release(rows: string[]): Promise<void>;
  /**
   * Returns log-probs (nats) and entropies of each sample's tokens; 0 where mask = 0. Entropies are absent if the engine
   * cannot compute them. With `withSquares`, also returns the sum of the squared probabilities of the distribution at
   * each token, if the engine can compute it.
   */
  score(
    which: WhichPolicy,
    samples: BareSample[],
    budget: PassBudget,
    temperature: number,
    withSquares?: boolean,
  ): Promise<{ logprobs: Float32Array[]; entropies?: Float32Array[]; squares?: Float32Array[] }>;
  /**
   * Returns data about the actor's distribution at each token with mask = 1, including the `top` most likely tokens.
   */
  inspect(samples: BareSample[], budget: PassBudget, temperature: number, top: number): Promise<InspectedSample[]>;
  /**
   * Returns how much the actor's log-prob of a sample's tokens with mask = 1 depends on each part of the pictures that the
   * sample shows (models/vision/picture-attribution.ts). The gradient is not added to that of any update.
   * @throws UserError if the model does not read pictures
   */
  attributePictures(sample: BareSample, budget: PassBudget, temperature: number): Promise<PictureAttributions>;
  /**
   * Returns the actor's log-prob of every text after every prompt, summed over the text's tokens, in nats; indexed as
   * [text][prompt]. Each distinct prompt is processed once, regardless of the number of texts. Prompts and texts must
   * not be empty. `shows` has the pictures that each prompt shows; by default, none does.
   */
  crossScore(
    prompts: Int32Array[],
    texts: Int32Array[],
    budget: PassBudget,
    temperature: number,
    shows?: (readonly ShownPicture[])[],
  ): Promise<Float64Array[]>;
  /** Runs one optimizer step of the actor on a mini-batch; `seed` determines the adapters' dropout. */
  update(
    samples: WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<UpdateMetrics>;
  /**
   * Computes the gradient of each part of the actor's loss, separately for each bucket, which is a list of
   * mini-batches. The samples are given as [bucket][mini-batch][sample]. Changes no weights.
   */
  analyseGradients(
    buckets: WeightedSample[][][],
    budget: PassBudget,
    loss: PolicyLossOptions,
    seed: number,
  ): Promise<GradientAnalysis>;
  /** Returns the critic's value of each token, per sample; 0 where mask = 0. */
  values(samples: BareSample[], budget: PassBudget): Promise<Float32Array[]>;
  updateCritic(
    samples: CriticSample[],
    budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics>;
  /** Runs one optimizer step on the mean cross-entropy of the tokens with mask = 1, and returns the loss. */
  trainSupervised(
    samples: BareSample[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<number>;
  /**
   * Computes and discards the gradient of the longest possible pass, so that a lack of memory is detected before the
   * first step.
   * @param picture size in pixels of a picture that is encoded, too
   * @returns `imageTokens` is the number of tokens of this picture; 0 without one
   */
  tryLongest(
    budget: PassBudget,
    length: number,
    picture?: { width: number; height: number },
  ): Promise<{ tokens: number; imageTokens: number; seconds: number }>;
  /**
   * Saves the state that `rollBack` restores. Copies weights and moments only if the number of trained parameters is at
   * most `undoParameters` (models/engine-undo.ts).
   */
  remember(): Promise<void>;
  /**
   * Restores weights and moments to their values at the last call of `remember`. Returns false if this call made no
   * copy and optimizer steps have run since.
   */
  rollBack(): Promise<boolean>;
  state(): Promise<State>;
  restore(state: State): Promise<void>;
  /** Restores only the critic's weights, not its moments. Used by callers that only compute values. */
  restoreCritic(weights: Float32Array): Promise<void>;
  /** Returns the actor's trained parameters under Hugging Face names: all weights, or the adapter factors. */
  parameters(): Promise<NamedTensor[]>;
}
