// Sampling with the seeded stream: frequencies by chi-square, and hand-computed edge cases.
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { drawToken } from '../../../../extension/engine/sampling/host-sampler';

const plain = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, do_sample: true };
const logitsOf = (...p: number[]): Float32Array => Float32Array.from(p, Math.log);

/** Pearson's statistic of 20,000 samples against the expected shares. */
function chiSquare(logits: Float32Array, cuts: typeof plain, expected: number[]): number {
  const stream = new RandomStream(11);
  const n = 20_000;
  const counts = new Array<number>(logits.length).fill(0);
  for (let i = 0; i < n; i++) counts[drawToken(logits, 0, logits.length, cuts, stream.uniform()).token]++;
  return expected.reduce((sum, p, i) => {
    if (p === 0) expect(counts[i]).toBe(0);
    return p === 0 ? sum : sum + (counts[i] - n * p) ** 2 / (n * p);
  }, 0);
}

describe('frequencies', () => {
  const p = [0.4, 0.3, 0.15, 0.1, 0.05];
  const normalized = (weights: number[]): number[] => weights.map(w => w / weights.reduce((a, b) => a + b));

  // Chi-square with 4 degrees of freedom exceeds 18.5 for one seed in a thousand, with fewer degrees less often.
  it.each([
    ['as they are', plain, p],
    ['top-k 3', { ...plain, top_k: 3 }, normalized([0.4, 0.3, 0.15, 0, 0])],
    ['top-k beyond the vocabulary', { ...plain, top_k: 99 }, p],
    ['top-p 0.6', { ...plain, top_p: 0.6 }, normalized([0.4, 0.3, 0, 0, 0])],
    ['top-p 0.71', { ...plain, top_p: 0.71 }, normalized([0.4, 0.3, 0.15, 0, 0])],
    ['top-k 3, then 0.8 of what is left', { ...plain, top_k: 3, top_p: 0.8 }, normalized([0.4, 0.3, 0, 0, 0])],
    ['temperature 2', { ...plain, temperature: 2 }, normalized(p.map(Math.sqrt))],
    ['temperature ½, top-k 2', { ...plain, temperature: 0.5, top_k: 2 }, normalized([0.16, 0.09, 0, 0, 0])],
  ])('equal the probabilities: %s', (_, cuts, expected) =>
    expect(chiSquare(logitsOf(...p), cuts, expected)).toBeLessThan(18.5),
  );

  it('are uniform over a large vocabulary', () => {
    // 499 degrees of freedom: exceeds 602 for one seed in a thousand
    expect(chiSquare(new Float32Array(500), plain, new Array<number>(500).fill(1 / 500))).toBeLessThan(602);
  });
});

describe('edge cases', () => {
  it('keeps at least the most likely token for any top-p', () => {
    expect(drawToken(logitsOf(0.2, 0.5, 0.3), 0, 3, { ...plain, top_p: 1e-9 }, 0.999999).token).toBe(1);
  });

  it('draws the first token at 0 and the last one at the largest uniform', () => {
    const logits = logitsOf(0.25, 0.25, 0.25, 0.25);
    const largest = 1 - 2 ** -32;
    expect([0, 0.25, 0.499, 0.5, largest].map(u => drawToken(logits, 0, 4, plain, u).token)).toEqual([0, 1, 1, 2, 3]);
    expect(drawToken(logits, 0, 4, { ...plain, top_k: 3 }, largest).token).toBe(2);
  });

  it('never draws a token of probability 0', () => {
    const logits = Float32Array.of(-Infinity, 1, -Infinity, 1, -Infinity);
    for (const cuts of [plain, { ...plain, top_k: 4 }, { ...plain, top_p: 0.999 }])
      for (const u of [0, 0.3, 0.5, 0.9, 1 - 2 ** -32])
        expect(drawToken(logits, 0, 5, cuts, u).logprob).toBeCloseTo(Math.log(0.5), 6);
  });

  it('handles logits of any size', () => {
    expect(drawToken(Float32Array.of(3e38, -3e38, 3e38), 0, 3, { ...plain, temperature: 0.01 }, 0.7)).toEqual({
      token: 2,
      logprob: Math.log(0.5),
    });
  });
});
