// Options of the engine's `load`: model, adapters, reference policy and critic, with their devices and formats. This
// file also declares the properties of a loaded model.
import type { FloatType } from './graph/graph';
import type { Device } from './session/devices';
import type { Provider } from './session/session';

/** Storage format of the weights of a frozen base model. */
export type BaseQuantization = 'none' | 'int8';

/** Low-rank adapters; `targets` and `exclude` have the syntax of PEFT's target_modules and exclude_modules. */
export interface AdapterOptions {
  rank: number;
  alpha: number;
  /** Dropout on the inputs of the decoder's adapters; those of a vision encoder have none. */
  dropout: number;
  targets: string | readonly string[];
  /** Layers among `targets` that get no adapter; none if null or undefined. */
  exclude?: string | readonly string[] | null;
}

export interface LoadOptions {
  /** Model folder in Hugging Face format. */
  modelFolder: string;
  /** Folder of an initial adapter in PEFT format; null for none. */
  adapterFolder: string | null;
  /** Whether the model is only scored: no weights are trained, and all stay in their files. Defaults to false. */
  frozen?: boolean;
  device: Device;
  /** Name that error messages use for the device option; defaults to workbench.device. */
  deviceKey?: string;
  threads: number;
  /**
   * Options of the adapters to train over the frozen base; null trains all weights. If `adapterFolder` is set, the
   * options of the adapter in this folder are used instead.
   */
  lora: AdapterOptions | null;
  /**
   * Whether a vision encoder and its projection are trained too: all their weights, or new adapters among `lora`. By
   * default, they are trained only if the adapter in `adapterFolder` contains factors of theirs.
   */
  trainsEncoder?: boolean;
  /**
   * Folder whose encoder shows pictures to reference policy and critic if the encoder is trained; defaults to
   * `modelFolder`.
   */
  encoderFolder?: string;
  /** `int8`: rollouts use 8-bit matmuls, which requires a frozen base. */
  rolloutQuantization: BaseQuantization;
  /** `int8`: the frozen base is kept in 8 bits while adapters are trained. */
  baseQuantization: BaseQuantization;
  /** Precision of matmuls with weights; defaults to float32. */
  precision?: FloatType;
  /** Whether activations are recomputed in the backward pass instead of being kept in memory. */
  checkpointed: boolean;
  /**
   * Folder of the reference policy's weights, which must have the actor's architecture; null for none. With adapters,
   * the base is the reference policy.
   */
  referenceFolder: string | null;
  /** Storage format of the actor's and critic's optimizer moments; defaults to float32. */
  moments?: { actor: MomentFormat; critic: MomentFormat };
  /**
   * Whether to create a critic. Without adapters, the critic is a copy of the decoder with a value head. With adapters,
   * the critic consists of the shared base, separate adapters and a value head.
   */
  critic: boolean;
  /** Seed for initialising new adapters and the critic's value head. */
  seed: number;
  /** Maximum sequence length; null for the model's limit. */
  maxPositions: number | null;
  /** Folder for files derived from models, such as 8-bit bases. */
  cacheFolder: string;
  /** Whether the model generates; otherwise it only scores given texts and trains on them. Defaults to true. */
  generates?: boolean;
  /** What a vision-language model needs to show pictures; undefined if none are shown. */
  pictures?: PictureOptions;
}

export interface PictureOptions {
  /** Folder that contains the pictures, which samples and rows name. */
  folder: string;
  /** Limits of a picture's size in pixels; by default, those of the model's image processor. */
  minPixels?: number | null;
  maxPixels?: number | null;
}

/** The options of a model that is not trained and has no reference policy or critic. */
export const untrained = {
  lora: null,
  rolloutQuantization: 'none',
  baseQuantization: 'none',
  checkpointed: false,
  referenceFolder: null,
  critic: false,
  seed: 0,
} as const satisfies Partial<LoadOptions>;

export interface LoadedModel {
  /** `parameters`: number of all parameters. `trained`: number of trained parameters. */
  parameters: number;
  trained: number;
  maxPositions: number;
  /** Number of tokens for which the model computes a logit. */
  vocabSize: number;
  /** onnxruntime provider that runs the model; `tinker` for a server of the Tinker API. */
  provider: Provider | 'tinker';
  /** Result of the device's self-check, in one line; null if no device was checked. */
  deviceCheck: string | null;
  /** Options of the adapter; null without adapter. */
  lora: AdapterOptions | null;
}

/** Storage format of AdamW's moments. */
export type MomentFormat = 'float32' | 'int8';
