// Input of the memory plan: the model's configuration, and the sizes and features of a run.
import type { LossMode } from '../../algorithms/policy-loss-options';
import type { BaseQuantization } from '../../engine/load-options';
import type { MomentFormat } from '../../engine/load-options';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { FileTensor } from '../decoder/decoder-parameters';
import type { LoraOptions } from '../adapters/lora';
import type { EncoderConfig } from '../vision/encoder-config';
import type { PatchGrid } from '../vision/patches';

/** What a run shows to a vision-language model. */
export interface PicturePlan {
  encoder: EncoderConfig;
  /** Element type of the encoder's weights. */
  stored: FileTensor['dtype'];
  /** Patch grids of the picture with the most image tokens: one, or one per tile. */
  grids: readonly PatchGrid[];
  /** Number of image tokens of this picture. */
  tokens: number;
  /** Maximum number of image tokens of a sequence. */
  perSequence: number;
  /** Maximum number of different pictures of the run. */
  pictures: number;
}

export interface PlanInput {
  decoder: DecoderConfig;
  /** Element type of the model's files. */
  stored: FileTensor['dtype'];
  /** Adapter options; null if all weights are trained. */
  lora: LoraOptions | null;
  /** The vision encoder if it is trained too: all its weights, or adapters among `lora`. */
  trainedEncoder?: EncoderConfig | undefined;
  rolloutQuantization: BaseQuantization;
  baseQuantization: BaseQuantization;
  /** Storage format of the optimizer moments. */
  moments: { actor: MomentFormat; critic: MomentFormat };
  /** Whether activations are recomputed in the backward pass. */
  checkpointed: boolean;
  reference: boolean;
  critic: boolean;
  /** The teacher of on-policy distillation on this machine, whose weights are mapped; absent without one. */
  teacher?: { decoder: DecoderConfig; stored: FileTensor['dtype'] };
  /** What is shown; absent for a model that reads text only, and if states are texts. */
  pictures?: PicturePlan;
  klLoss: boolean;
  lossMode: LossMode;
  /** False for an engine that only generates. */
  trains: boolean;
  /** Maximum tokens of a sequence. */
  longest: number;
  /** Packed tokens per pass with gradient, for the policy and for the critic. */
  updateTokens: number;
  criticTokens: number;
  /**
   * Packed tokens per pass without gradient. `scoreTokens`: for old log-probs; 0 if the sampler's log-probs are used
   * instead. `referenceTokens`: for the reference policy.
   */
  scoreTokens: number;
  referenceTokens: number;
  /** Packed tokens per prompt pass of the collapse diagnosis; 0 without diagnosis. */
  diagnosisTokens: number;
  /** Number of concurrent episodes. */
  rollouts: number;
  /** Number of environment processes; 0 for an engine without a run. */
  environments: number;
  /** Whether samples share a prefix, such as the same system message. */
  sharesPrefixes: boolean;
  /** Maximum number of tokens of a response. A prompt has at most `longest` − `answer` tokens. */
  answer: number;
  /**
   * Number of episodes that share a prompt (the group size), if each episode is one prompt and one response; otherwise
   * 0.
   */
  promptSharedBy: number;
}
