// Sampling a token from any logits: the set selected by top-k and top-p, the probability of each token in this set, and
// the log-prob, which is always computed before top-k and top-p. The reference sorts and sums again in double
// precision.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawToken } from '../../../../extension/engine/sampling/host-sampler';
import type { SamplingCuts } from '../../../../extension/engine/sampling/host-sampler';
import { plainSampling } from '../../../support/small-models';

/** Multiples of 1/64: ties are common, and different logits have different weights. */
const logit = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -512, max: 512 }).map(x => x / 64) },
  { weight: 1, arbitrary: fc.constantFrom(-Infinity, -1e4, 0, 0) },
);
const logits = fc
  .array(logit, { minLength: 1, maxLength: 40 })
  .filter(row => row.some(Number.isFinite))
  .map(row => Float32Array.from(row));
const temperature = fc.constantFrom(0.05, 0.5, 1, 1.7);
const uniform = fc.integer({ min: 0, max: 2 ** 32 - 1 }).map(word => word / 2 ** 32);
const uncut: SamplingCuts = plainSampling;

const draw = (row: Float32Array, cuts: SamplingCuts, u: number) => drawToken(row, 0, row.length, cuts, u);

/** Probabilities at a temperature. */
function softmax(row: Float32Array, temperature: number): number[] {
  const top = Math.max(...row);
  const weights = Array.from(row, x => Math.exp((x - top) / temperature));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map(w => w / sum);
}

/** Token ids by descending probability; the lower id first on a tie. */
const ranked = (p: number[]): number[] => p.map((_, i) => i).sort((a, b) => p[b] - p[a] || a - b);

/** Share of 4096 evenly spaced numbers in [0, 1) that sample each token, when used as the random number. */
function shares(row: Float32Array, cuts: SamplingCuts): number[] {
  const n = 4096;
  const counts = new Array<number>(row.length).fill(0);
  for (let i = 0; i < n; i++) counts[draw(row, cuts, (i + 0.5) / n).token]++;
  return counts.map(count => count / n);
}

const expectShares = (actual: number[], expected: number[]): void =>
  expected.forEach((share, i) => expect(Math.abs(actual[i] - share), `token ${i}`).toBeLessThan(2 / 4096));

describe('a drawn token', () => {
  it('has the log-prob of the distribution before the cuts', () => {
    fc.assert(
      fc.property(
        logits,
        temperature,
        fc.boolean(),
        fc.double({ min: 0.05, max: 1, noNaN: true }),
        fc.integer({ min: -1, max: 9 }),
        uniform,
        (row, temperature, do_sample, top_p, top_k, u) => {
          const { token, logprob } = draw(row, { ...uncut, temperature, do_sample, top_p, top_k }, u);
          expect(logprob).toBeCloseTo(Math.log(softmax(row, temperature)[token]), 8);
          expect(Number.isFinite(logprob)).toBe(true);
        },
      ),
    );
  });

  it('occurs with its probability at the temperature', () => {
    fc.assert(
      fc.property(logits, temperature, (row, temperature) =>
        expectShares(shares(row, { ...uncut, temperature }), softmax(row, temperature)),
      ),
      { numRuns: 40 },
    );
  });

  it('is the first of the largest logits in greedy mode', () => {
    fc.assert(
      fc.property(logits, temperature, uniform, (row, temperature, u) => {
        const { token } = draw(row, { ...uncut, temperature, do_sample: false }, u);
        expect(token).toBe(row.indexOf(Math.max(...row)));
      }),
    );
  });

  it('does not depend on the data before and after the row', () => {
    fc.assert(
      fc.property(logits, logits, uniform, fc.constantFrom(1, 0.8), (row, other, u, top_p) => {
        const both = Float32Array.from([...other, ...row, ...other]);
        const cuts = { ...uncut, top_p };
        expect(drawToken(both, other.length, row.length, cuts, u)).toEqual(draw(row, cuts, u));
      }),
    );
  });
});

describe('top-k', () => {
  it('keeps the k most likely tokens, in proportion', () => {
    fc.assert(
      fc.property(logits, fc.integer({ min: 1, max: 45 }), temperature, (row, top_k, temperature) => {
        const p = softmax(row, temperature);
        const kept = new Set(ranked(p).slice(0, top_k));
        const mass = p.reduce((sum, x, i) => (kept.has(i) ? sum + x : sum), 0);
        expectShares(
          shares(row, { ...uncut, temperature, top_k }),
          p.map((x, i) => (kept.has(i) ? x / mass : 0)),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('is greedy for k = 1', () => {
    fc.assert(
      fc.property(logits, uniform, (row, u) => {
        const greedy = draw(row, { ...uncut, do_sample: false }, u);
        expect(draw(row, { ...uncut, top_k: 1 }, u)).toEqual(greedy);
      }),
    );
  });
});

describe('top-p', () => {
  it('keeps the smallest set whose mass reaches p, in proportion', () => {
    fc.assert(
      fc.property(
        logits,
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        fc.integer({ min: -1, max: 9 }),
        (row, top_p, top_k) => {
          const p = softmax(row, 1);
          const order = ranked(p).slice(0, top_k > 0 ? top_k : undefined);
          const afterTopK = order.reduce((sum, i) => sum + p[i], 0);
          let mass = 0;
          const nucleus = order.filter(i => {
            const wanted = mass < top_p * afterTopK;
            if (wanted) mass += p[i];
            return wanted;
          });
          // At the boundary of the set, rounding errors may change the decision.
          fc.pre(
            Math.abs(mass - top_p * afterTopK) > 1e-9 && Math.abs(mass - p[nucleus.at(-1)!] - top_p * afterTopK) > 1e-9,
          );
          const expected = p.map((x, i) => (nucleus.includes(i) ? x / mass : 0));
          expectShares(shares(row, { ...uncut, top_p, top_k }), expected);
        },
      ),
      { numRuns: 60 },
    );
  });
});
