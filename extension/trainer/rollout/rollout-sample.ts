// One training sequence of an episode, and the mask of its sampled tokens. An episode usually has one sample in mode
// `full`, and one per turn in the windowed modes (rollout-batch.ts).

import type { ShownPicture } from '../../engine/training-samples';

/**
 * One training sequence: a context as the model saw it, with the responses that were sampled in it. Arrays have the
 * length of `ids`.
 */
export interface RolloutSample {
  ids: Int32Array;
  /**
   * 1 if the policy is trained on the token. By default, these tokens are the sampled tokens of `turns`
   * (response-mask.ts).
   */
  mask: Uint8Array;
  /** Log-probs of the sampled tokens under the sampler, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /** The pictures that the tokens show; absent if they show none. */
  shows?: readonly ShownPicture[];
  /**
   * Turns (from 1) whose responses are trained in this sample, oldest first. `span` is the range [from, to) of the
   * turn's sampled tokens in `ids`.
   */
  turns: { turn: number; span: [number, number] }[];
  /** The role whose context this is; absent in an episode without roles. */
  role?: string;
}

/** Returns a mask that is 1 at the sampled tokens of the sample's turns. */
export function sampledMask({ ids, turns }: Pick<RolloutSample, 'ids' | 'turns'>): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const { span } of turns) mask.fill(1, ...span);
  return mask;
}
