// Interface between the training loop and the engine. The engine runs in a worker thread (onnxruntime's run() blocks),
// so every call is asynchronous and every argument is structured-cloneable. Rows are episodes; token ids are plain
// int32. Invariant: the engine takes and returns token ids; it decodes text only to detect stop strings. What the calls
// take and return: load-options.ts, generation-calls.ts, training-samples.ts and loss-options.ts.
import type { LoadOptions, LoadedModel } from './load-options';
import type { GenerationRow, SamplingOptions, GeneratedRow } from './generation-calls';
import type { TrainingSample, PassBudget, InspectedSample, WeightedSample, CriticSample } from './training-samples';
import type {
  PolicyLossOptions,
  OptimizerOptions,
  UpdateMetrics,
  GradientAnalysis,
  CriticLossOptions,
} from './loss-options';

/**
 * AdamW state of one network: moments with the length of its flat weights, or bytes in blocks of 256 with one scale
 * each (engine/optimizer/byte-moments.ts).
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
