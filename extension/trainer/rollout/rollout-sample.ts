// One training sequence of an episode, and the mask of its sampled tokens. An episode has one sample in mode `full` and
// one per turn in the windowed modes (rollout-batch.ts).

/**
 * One training sequence: a context exactly as the model saw it, with the responses sampled in it. Arrays have the
 * length of `ids`.
 */
export interface RolloutSample {
  ids: Int32Array;
  /** 1 where a token is trained on: at the sampled tokens of `turns` unless configured otherwise (response-mask.ts). */
  mask: Uint8Array;
  /** Log-probs of the sampled tokens under the sampler, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /**
   * Turns (from 1) whose responses this sample trains, oldest first, with the span [from, to) of their sampled tokens
   * in `ids`.
   */
  turns: { turn: number; span: [number, number] }[];
}

/** 1 where a token of the sample's turns was sampled. */
export function sampledMask({ ids, turns }: Pick<RolloutSample, 'ids' | 'turns'>): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const { span } of turns) mask.fill(1, ...span);
  return mask;
}
