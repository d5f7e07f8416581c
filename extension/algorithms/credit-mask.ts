// Credit masks: pure functions that weigh the tokens of sampled responses by the policy's own confidence while it sampled
// them, in the interface that plug-ins implement (envs/api/plugins/mask.ts). Advantages are multiplied by the weights, so a
// token with weight 0 is not trained. RAGEN has no such masks; they try two ideas for which no paper gives a number: ignore
// what an action does not need, and weigh turns by confidence.
import type { Mask, WeighedTurn } from '../../envs/api/plugins/mask';

/** The sampled tokens of one sample. */
export interface CreditSample {
  /** Log-probs of the sampled tokens under the sampler, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /** Ranges [from, to) of the sampled tokens of each turn. */
  spans: readonly (readonly [number, number])[];
}

/** A mask that needs only log-probs. */
interface BuiltInMask extends Mask {
  weigh(samples: readonly { turns: readonly Pick<WeighedTurn, 'logprobs'>[] }[]): Float32Array[][];
}

/** Probability from which the choice of a token counts as certain, so that the token decided nothing. */
const certain = 0.99;

/** Returns the geometric mean of the probabilities of a turn's tokens, 0…1, from their log-probs. */
export const confidence = (logprobs: Float32Array | readonly number[]): number => {
  let sum = 0;
  for (const logprob of logprobs) sum += logprob;
  return Math.exp(sum / Math.max(1, logprobs.length));
};

const turnwise = (weights: (logprobs: Float32Array) => Float32Array): BuiltInMask => ({
  weigh: samples => samples.map(({ turns }) => turns.map(({ logprobs }) => weights(logprobs))),
});

/**
 * The built-in masks by name. `confident_turns` weighs a turn by the geometric mean p of its tokens' probabilities,
 * `unsure_turns` by 1 − p. `deciding_tokens` has the weight 0 at tokens that were sampled with a probability of at least
 * 0.99, else 1.
 */
export const builtInMasks = {
  confident_turns: turnwise(logprobs => new Float32Array(logprobs.length).fill(confidence(logprobs))),
  unsure_turns: turnwise(logprobs => new Float32Array(logprobs.length).fill(1 - confidence(logprobs))),
  deciding_tokens: turnwise(logprobs => logprobs.map(x => Number(Math.exp(x) < certain))),
} satisfies Record<string, BuiltInMask>;

/** Names of the built-in masks; `none` is no mask. */
export const creditMasks = ['none', ...(Object.keys(builtInMasks) as (keyof typeof builtInMasks)[])] as const;

/** Returns the log-probs of the sampled tokens of each turn of a sample. */
export const turnLogprobs = ({ logprobs, spans }: CreditSample): Float32Array[] =>
  spans.map(([from, to]) => logprobs.subarray(from, to));

/**
 * Returns one array of weights per sample, with one weight per token, from the weights of the turns' tokens: the mean
 * weight of the sampled tokens of all samples is 1, so a mask does not change the size of the update; it is 0 if all
 * weights are 0. Tokens that were not sampled have the weight 0.
 */
export function creditWeights(
  samples: readonly CreditSample[],
  weights: readonly (readonly ArrayLike<number>[])[],
): Float32Array[] {
  let [sum, count] = [0, 0];
  const all = samples.map(({ logprobs, spans }, sample) => {
    const row = new Float32Array(logprobs.length);
    spans.forEach(([from], turn) => {
      const own = Float32Array.from(weights[sample][turn]);
      row.set(own, from);
      sum += own.reduce((total, weight) => total + weight, 0);
      count += own.length;
    });
    return row;
  });
  const scale = sum > 0 ? count / sum : 0;
  return all.map(row => row.map(weight => weight * scale));
}
