// Sampling in a graph: counts over many rows against the softmax by chi-square, at temperatures other than 1, with
// vocabularies that fill their blocks and ones that do not; the log-prob of the sampled token; and top-k, top-p and
// min-p combined on the host at such temperatures.
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Sampler } from '../../../../extension/engine/sampling/graph-sampler';
import { drawToken } from '../../../../extension/engine/sampling/host-sampler';
import type { SamplingCuts } from '../../../../extension/engine/sampling/host-sampler';
import { float32 } from '../../../../extension/engine/session/session';
import { plainSampling } from '../../../support/small-models';

const plain: SamplingCuts = plainSampling;

/** Logits like a language model's: a few likely tokens and a long tail. */
function logitsOf(vocab: number, seed: number): Float32Array {
  const stream = new RandomStream(seed);
  return Float32Array.from({ length: vocab }, () => 2 * stream.normal());
}

function softmax(logits: Float32Array, temperature: number): number[] {
  const top = Math.max(...logits);
  const weights = Array.from(logits, x => Math.exp((x - top) / temperature));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map(w => w / sum);
}

/** Pearson's statistic and its degrees of freedom; tokens expected fewer than 5 times are pooled. */
function chiSquare(counts: readonly number[], expected: readonly number[]): { statistic: number; freedom: number } {
  const n = counts.reduce((a, b) => a + b);
  let [statistic, cells] = [0, 0];
  const rest = { count: 0, expected: 0 };
  counts.forEach((count, i) => {
    const mean = n * expected[i];
    if (mean === 0) expect(count, `token ${i} is cut`).toBe(0);
    if (mean < 5) {
      rest.count += count;
      rest.expected += mean;
      return;
    }
    statistic += (count - mean) ** 2 / mean;
    cells++;
  });
  if (rest.expected >= 5) {
    statistic += (rest.count - rest.expected) ** 2 / rest.expected;
    cells++;
  }
  return { statistic, freedom: cells - 1 };
}

/** Approximate value that chi-square exceeds once in ten thousand (Wilson and Hilferty). */
const limit = (freedom: number): number => freedom * (1 - 2 / (9 * freedom) + 3.72 * Math.sqrt(2 / (9 * freedom))) ** 3;

function expectAlike(counts: readonly number[], expected: readonly number[], least: number): void {
  const { statistic, freedom } = chiSquare(counts, expected);
  expect(freedom, 'enough tokens are told apart').toBeGreaterThanOrEqual(least);
  expect(statistic).toBeLessThan(limit(freedom));
  // A far too good fit would mean that the uniforms do not decide the sample.
  expect(statistic).toBeGreaterThan(freedom * (1 - 2 / (9 * freedom) - 3.72 * Math.sqrt(2 / (9 * freedom))) ** 3);
}

describe('tokens sampled in a graph', () => {
  it.each([
    [0.6, 360], // divides evenly into blocks
    [0.6, 211], // a prime: the last block is padded
    [1.7, 211],
    [1.7, 97],
  ])('follow the softmax at temperature %d over %d tokens', async (temperature, vocab) => {
    const sampler = new Sampler(vocab, { threads: 1 });
    const row = logitsOf(vocab, vocab);
    const stream = new RandomStream(21);
    const [rows, calls] = [250, 60];
    const logits = new Float32Array(rows * vocab);
    for (let r = 0; r < rows; r++) logits.set(row, r * vocab);
    const p = softmax(row, temperature);
    const counts = new Array<number>(vocab).fill(0);
    let worst = 0; // distance of a reported log-probability
    for (let call = 0; call < calls; call++) {
      const uniforms = Float32Array.from({ length: rows }, () => stream.uniform());
      const { tokens, logprobs } = await sampler.draw(float32(logits, [rows, vocab]), uniforms, {
        ...plain,
        temperature,
      });
      tokens.forEach((token, r) => {
        counts[token]++;
        worst = Math.max(worst, Math.abs(logprobs[r] - Math.log(p[token])));
      });
    }
    expect(worst).toBeLessThan(1e-4);
    expectAlike(counts, p, 25);
  });

  it("depend on their own row only: a batch of different rows gives each row's single result", async () => {
    const vocab = 97;
    const sampler = new Sampler(vocab, { threads: 1 });
    const stream = new RandomStream(3);
    const logits = [1, 2, 3, 4].map(seed => logitsOf(vocab, seed));
    const uniforms = Float32Array.from(logits, () => stream.uniform());
    const cuts = { ...plain, temperature: 1.3 };
    const together = await sampler.draw(
      float32(Float32Array.from(logits.flatMap(row => [...row])), [4, vocab]),
      uniforms,
      cuts,
    );
    for (const [r, row] of logits.entries()) {
      const alone = await sampler.draw(float32(row, [1, vocab]), uniforms.subarray(r, r + 1), cuts);
      expect([alone.tokens[0], alone.logprobs[0]]).toEqual([
        together.tokens[r],
        expect.closeTo(together.logprobs[r], 5),
      ]);
      // The host inverts the same cumulative sum.
      expect(drawToken(row, 0, vocab, cuts, uniforms[r]).token).toBe(alone.tokens[0]);
    }
  });

  it('refuse top-k, top-p and min-p', async () => {
    const sampler = new Sampler(7, { threads: 1 });
    for (const cut of [{ top_k: 3 }, { top_p: 0.9 }, { min_p: 0.1 }, { repetition_penalty: 1.1 }])
      await expect(
        sampler.draw(float32(new Float32Array(7), [1, 7]), Float32Array.of(0.5), { ...plain, ...cut }),
      ).rejects.toThrow('require the host sampler');
  });
});

describe('tokens sampled after cuts, at a temperature', () => {
  const vocab = 150;
  const row = logitsOf(vocab, 5);

  /** The reference distribution, one cut after another: top-k, then top-p of the remaining mass, then min-p. */
  function expected({ temperature, top_k, top_p, min_p }: SamplingCuts): number[] {
    const p = softmax(row, temperature);
    let kept = p.map((_, i) => i).sort((a, b) => p[b] - p[a] || a - b);
    if (top_k > 0) kept = kept.slice(0, top_k);
    const mass = kept.reduce((sum, i) => sum + p[i], 0);
    let sum = 0;
    kept = kept.filter(i => {
      const wanted = sum < top_p * mass;
      sum += p[i];
      return wanted;
    });
    kept = kept.filter(i => p[i] >= min_p * p[kept[0]]);
    const left = kept.reduce((total, i) => total + p[i], 0);
    return p.map((x, i) => (kept.includes(i) ? x / left : 0));
  }

  it.each<[Partial<SamplingCuts>, number]>([
    [{ temperature: 0.7, top_k: 30 }, 20],
    [{ temperature: 1.5, top_p: 0.9 }, 20],
    [{ temperature: 1.5, min_p: 0.05 }, 10],
    [{ temperature: 0.7, top_k: 40, top_p: 0.95 }, 8],
    [{ temperature: 1.5, top_k: 60, top_p: 0.95, min_p: 0.02 }, 15],
  ])('follow the reference distribution with %j', (change, least) => {
    const cuts = { ...plain, ...change };
    const stream = new RandomStream(31);
    const counts = new Array<number>(vocab).fill(0);
    for (let i = 0; i < 10_000; i++) counts[drawToken(row, 0, vocab, cuts, stream.uniform()).token]++;
    const p = expected(cuts);
    expect(p.filter(x => x > 0).length, 'something is cut').toBeLessThan(vocab);
    expectAlike(counts, p, least);
  });

  it('apply top-p to the mass that top-k keeps, including tokens that min-p removes afterwards', () => {
    // Weights 1, ½ and a thousand times 0.003: top-p 0.6 of the total 4.5 reaches into the thousand, so both others are
    // kept.
    const tail = Float32Array.from({ length: 1002 }, (_, i) => Math.log([1, 0.5][i] ?? 0.003));
    const cuts = { ...plain, top_k: 1002, top_p: 0.6, min_p: 0.4 };
    expect([0, 0.6, 0.7, 0.999].map(u => drawToken(tail, 0, 1002, cuts, u).token)).toEqual([0, 0, 1, 1]);
  });

  it('apply a repetition penalty before the cuts, to the logits of seen tokens', () => {
    const seen = [...row.keys()]
      .sort((a, b) => row[b] - row[a])
      .slice(0, 10)
      .concat([...row.keys()].filter(i => row[i] < -2));
    const penalised = row.map((x, i) => (seen.includes(i) ? (x > 0 ? x / 1.4 : x * 1.4) : x));
    const cuts = { ...plain, temperature: 0.8, repetition_penalty: 1.4 };
    const stream = new RandomStream(41);
    const counts = new Array<number>(vocab).fill(0);
    for (let i = 0; i < 10_000; i++) counts[drawToken(row, 0, vocab, cuts, stream.uniform(), seen).token]++;
    expectAlike(counts, softmax(penalised, 0.8), 40);
  });
});
