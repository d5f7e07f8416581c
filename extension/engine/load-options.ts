// What the engine loads: model, adapters, reference policy and critic, with their devices and formats, and the facts
// about the loaded model.
import type { FloatType } from './graph/graph';
import type { Device } from './session/devices';
import type { Provider } from './session/session';

/** Storage format of a frozen base. */
export type BaseQuantization = 'none' | 'int8';

/** Low-rank adapters; `targets` as in PEFT's target_modules. */
export interface AdapterOptions {
  rank: number;
  alpha: number;
  dropout: number;
  targets: string | readonly string[];
}

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
