// Gibberish and loops of tokens: prime-rl's rules at their limits.
import { describe, expect, it } from 'vitest';
import { isGibberish, isRepetitive } from '../../../extension/algorithms/degenerate-text';

describe('gibberish', () => {
  const options = { token_id_threshold: 100, logprob_offset: 2 };
  const uniform = -Math.log(1000);
  it.each([
    ['a rare token far below uniform', [5, 101], [-1, uniform - 2.01], true],
    ['a rare token at the limit', [101], [uniform - 2], false],
    ['a token at the threshold', [100], [-50], false],
    ['a frequent token that was very unlikely', [7], [-50], false],
    ['a rare token that was likely', [999], [-0.1], false],
    ['no token', [], [], false],
  ])('%s', (_, ids, logprobs, expected) => {
    expect(isGibberish({ ids, logprobs }, options, 1000)).toBe(expected);
  });
});

describe('a loop', () => {
  const options = { window: 3, prob_threshold: 0.99 };
  const [sure, unsure] = [Math.log(0.999), Math.log(0.98)];
  it.each([
    ['a series as long as the window', [unsure, sure, sure, sure], true],
    ['a series that is interrupted', [sure, sure, unsure, sure, sure], false],
    ['probabilities at the threshold', Array<number>(5).fill(Math.log(0.99)), false],
    ['a greedy sampler’s certainty', [0, 0, 0], true],
    ['fewer tokens than the window', [sure, sure], false],
  ])('%s', (_, logprobs, expected) => {
    expect(isRepetitive({ ids: logprobs.map(() => 1), logprobs }, options)).toBe(expected);
  });
});
