// Credit masks: pure functions that weigh the tokens of sampled responses by the policy's own confidence while it sampled
// them. Advantages are multiplied by the weights, so a token with weight 0 is not trained. RAGEN has no such masks; they
// try two ideas for which no paper gives a number: ignore what an action does not need, and weigh turns by confidence.

/** The sampled tokens of one sample. */
export interface CreditSample {
  /** Log-probs of the sampled tokens under the sampler, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /** Ranges [from, to) of the sampled tokens of each turn. */
  spans: readonly (readonly [number, number])[];
}

/** Returns the weights of the tokens of a turn, from the log-probs of its tokens; not normalised. */
type TurnWeights = (logprobs: Float32Array) => Float32Array;

/** Probability from which the choice of a token counts as certain, so that the token decided nothing. */
const certain = 0.99;

/** Returns the geometric mean of the probabilities of a turn's tokens, 0…1, from their log-probs. */
export const confidence = (logprobs: Float32Array | readonly number[]): number => {
  let sum = 0;
  for (const logprob of logprobs) sum += logprob;
  return Math.exp(sum / Math.max(1, logprobs.length));
};

const turnWeights = {
  confident_turns: logprobs => new Float32Array(logprobs.length).fill(confidence(logprobs)),
  unsure_turns: logprobs => new Float32Array(logprobs.length).fill(1 - confidence(logprobs)),
  deciding_tokens: logprobs => logprobs.map(x => Number(Math.exp(x) < certain)),
} satisfies Record<string, TurnWeights>;

/** Values of `workbench.credit_mask`. */
export const creditMasks = ['none', 'confident_turns', 'unsure_turns', 'deciding_tokens'] as const;
export type CreditMask = (typeof creditMasks)[number];

/**
 * Returns one array of weights per sample, with one weight per token. `confident_turns` weighs a turn by the geometric
 * mean p of its tokens' probabilities, `unsure_turns` by 1 − p. `deciding_tokens` has the weight 0 at tokens that were
 * sampled with a probability of at least 0.99. The mean weight of the sampled tokens of all samples is 1, so the masks do
 * not change the size of the update; it is 0 if all weights are 0. Returns null for `none`.
 */
export function creditWeights(mask: CreditMask, samples: readonly CreditSample[]): Float32Array[] | null {
  if (mask === 'none') return null;
  let [sum, count] = [0, 0];
  const all = samples.map(({ logprobs, spans }) => {
    const weights = new Float32Array(logprobs.length);
    for (const [from, to] of spans) {
      const own = turnWeights[mask](logprobs.subarray(from, to));
      weights.set(own, from);
      sum += own.reduce((total, weight) => total + weight, 0);
      count += own.length;
    }
    return weights;
  });
  const scale = sum > 0 ? count / sum : 0;
  return all.map(weights => weights.map(weight => weight * scale));
}
