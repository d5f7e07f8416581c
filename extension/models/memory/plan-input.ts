// What the memory plan depends on: the model's shape, and the sizes and features of a run.
import type { LossMode } from '../../algorithms/policy-loss-options';
import type { BaseQuantization } from '../../engine/load-options';
import type { MomentFormat } from '../../engine/load-options';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { FileTensor } from '../decoder/decoder-parameters';
import type { LoraOptions } from '../adapters/lora';

export interface PlanInput {
  decoder: DecoderConfig;
  /** Element type of the model's files. */
  stored: FileTensor['dtype'];
  /** Null trains all weights. */
  lora: LoraOptions | null;
  rolloutQuantization: BaseQuantization;
  baseQuantization: BaseQuantization;
  /** Storage format of the optimizer moments. */
  moments: { actor: MomentFormat; critic: MomentFormat };
  /** Activations are recomputed in the backward pass. */
  checkpointed: boolean;
  reference: boolean;
  critic: boolean;
  klLoss: boolean;
  lossMode: LossMode;
  /** False for rollouts only. */
  trains: boolean;
  /** Maximum tokens of a sequence. */
  longest: number;
  /** Packed tokens of one pass with gradient, for the policy and for the critic. */
  updateTokens: number;
  criticTokens: number;
  /** Packed tokens of one old-log-prob pass (0 if the sampler's log-probs are used), and of one reference pass. */
  scoreTokens: number;
  referenceTokens: number;
  /** Packed tokens of one prompt pass of the collapse diagnosis; 0 without diagnosis. */
  diagnosisTokens: number;
  /** Number of concurrent episodes. */
  rollouts: number;
  /** Number of environment processes; 0 for the engine without a run. */
  environments: number;
  /** Whether samples share a prefix, such as the same system message. */
  sharesPrefixes: boolean;
  /** Maximum tokens of a response; prompts leave room for them. */
  answer: number;
  /** Episodes per group if an episode is one prompt and its response, whose prefix a group's passes share; else 0. */
  promptSharedBy: number;
}
