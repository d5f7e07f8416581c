// The interface of credit masks. The built-in masks (extension/algorithms/credit-mask.ts) implement it, and so does a
// plug-in: a file whose default export is created by `defineMask` and that `workbench.credit_mask` names. A mask weighs the
// sampled tokens; advantages are multiplied by the weights, so a token of weight 0 is not trained. Invariant: `weigh` is a
// function of its arguments.

/** The sampled tokens of a turn. */
export interface WeighedTurn {
  /** Log-probs of the tokens under the policy that sampled them, in nats. */
  logprobs: Float32Array;
  /** The text of each token; part of a character where a token is not text on its own. */
  texts: readonly string[];
}

/** What the policy sampled in one context: an episode or, with one context per turn, a turn. */
export interface WeighedSample {
  turns: readonly WeighedTurn[];
}

/** A credit mask. */
export interface Mask {
  /**
   * Returns for each sample, for each of its turns, one weight per token: finite and at least 0. The trainer divides all
   * weights by their mean, so a mask does not change the size of the update; if all are 0, nothing is trained.
   */
  weigh(samples: readonly WeighedSample[], settings: MaskSettings): readonly (readonly ArrayLike<number>[])[];
}

export interface MaskSettings {
  /** Number of the step, from 1. */
  step: number;
}

/** The default export of a mask's file. */
export interface MaskPlugin extends Mask {
  readonly kind: 'mask';
  /** Name in messages. */
  name: string;
}

/** Declares a credit mask. */
export function defineMask(definition: Omit<MaskPlugin, 'kind'>): MaskPlugin {
  return { kind: 'mask', ...definition };
}
