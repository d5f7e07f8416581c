// Credit masks: the weights of turns and tokens by the sampler's confidence.
import { expect, test } from 'vitest';
import {
  builtInMasks,
  creditWeights,
  turnLogprobs,
  type CreditSample,
} from '../../../extension/algorithms/credit-mask';

/** A sample with a prompt token before each turn, from the probabilities of the turns' tokens. */
function sampleOf(...turns: number[][]): CreditSample {
  const logprobs: number[] = [];
  const spans = turns.map((probabilities): [number, number] => {
    logprobs.push(0);
    const from = logprobs.length;
    for (const p of probabilities) logprobs.push(Math.log(p));
    return [from, logprobs.length];
  });
  return { logprobs: Float32Array.from(logprobs), spans };
}
const rounded = (weights: Float32Array[]): number[][] => weights.map(row => Array.from(row, x => Number(x.toFixed(4))));
/** The weights of the samples' tokens by a built-in mask. */
const weighed = (mask: keyof typeof builtInMasks, samples: readonly CreditSample[]): Float32Array[] =>
  creditWeights(
    samples,
    builtInMasks[mask].weigh(samples.map(sample => ({ turns: turnLogprobs(sample).map(logprobs => ({ logprobs })) }))),
  );
const names = Object.keys(builtInMasks) as (keyof typeof builtInMasks)[];
const samples = [sampleOf([0.9, 0.4], [0.25, 1]), sampleOf([1])];

test('confident_turns weighs by the geometric mean of the probabilities', () => {
  // numpy: w = [.6, .6, .5, .5, 1]; w / w.mean() == [.9375, .9375, .78125, .78125, 1.5625]
  expect(rounded(weighed('confident_turns', samples))).toEqual([
    [0, 0.9375, 0.9375, 0, 0.7813, 0.7813],
    [0, 1.5625],
  ]);
});

test('unsure_turns weighs by one minus this mean', () => {
  // numpy: w = [.4, .4, .5, .5, 0]; w / w.mean() == [1.1111, 1.1111, 1.3889, 1.3889, 0]
  expect(rounded(weighed('unsure_turns', samples))).toEqual([
    [0, 1.1111, 1.1111, 0, 1.3889, 1.3889],
    [0, 0],
  ]);
});

test('deciding_tokens leaves out the tokens that were certain', () => {
  expect(rounded(weighed('deciding_tokens', samples))).toEqual([
    [0, 1.6667, 1.6667, 0, 1.6667, 0],
    [0, 0],
  ]);
});

test.each(names)('%s has the mean weight 1, or 0 if no token counts', mask => {
  const weights = weighed(mask, samples);
  const sum = weights.flatMap(row => [...row]).reduce((total, weight) => total + weight, 0);
  expect(sum).toBeCloseTo(5, 5);
  const sure = weighed(mask, [sampleOf([1, 1])]);
  expect([...sure[0]]).toEqual(mask === 'confident_turns' ? [0, 1, 1] : [0, 0, 0]);
});
