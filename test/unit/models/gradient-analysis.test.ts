// Measured gradients against those of optimizer steps, and their geometry against separately computed vectors.
import { describe, expect, it } from 'vitest';
import type { LossPart, PolicyLossOptions } from '../../../extension/engine/loss-options';
import type { WeightedSample } from '../../../extension/engine/training-samples';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import { analyseGradients } from '../../../extension/models/gradient-analysis';
import type { Policy } from '../../../extension/models/policy';
import {
  goldenConfig,
  goldenLoss,
  goldenOptimizer,
  goldenWeights,
  relativeError,
  trainedPolicy,
  wholeBatch,
} from '../../support/small-models';

const config = goldenConfig('qwen2');
const load = (): Policy => trainedPolicy(config, goldenWeights('qwen2'));

/** Samples of random tokens, all but the first trained on, with log-probs near the policy's. */
async function samples(policy: Policy, count: number, seed: number): Promise<WeightedSample[]> {
  const stream = new RandomStream(seed);
  const bare = Array.from({ length: count }, () => {
    const length = 6 + stream.integer(8);
    return {
      ids: Int32Array.from({ length }, () => stream.integer(config.vocabSize)),
      mask: new Uint8Array(length).fill(1, 1),
    };
  });
  const { logprobs } = await policy.score(bare, wholeBatch, goldenLoss.temperature);
  const total = bare.reduce((sum, { ids }) => sum + ids.length - 1, 0);
  return bare.map((sample, i) => ({
    ...sample,
    old_logprobs: logprobs[i],
    ref_logprobs: logprobs[i].map(x => x + 0.4 * stream.normal()),
    advantages: new Float32Array(sample.ids.length).fill(stream.normal()),
    weights: new Float32Array(sample.ids.length).fill(1 / total),
  }));
}

/** The gradient of one loss part, from an optimizer step on a separate policy with only that part. */
async function gradientOf(batch: WeightedSample[], part: LossPart): Promise<Float32Array> {
  const policy = load();
  const zero = (xs: Float32Array): Float32Array => new Float32Array(xs.length);
  const alone = part === 'task' ? batch : batch.map(s => ({ ...s, advantages: zero(s.advantages) }));
  const loss: PolicyLossOptions = {
    ...goldenLoss,
    entropy_coeff: part === 'entropy' ? goldenLoss.entropy_coeff : 0,
    use_kl_loss: part === 'kl',
  };
  await policy.update(alone, wholeBatch, loss, goldenOptimizer);
  return (await policy.bank.readGradient()).flat;
}

const norm = (g: Float32Array): number => Math.sqrt(g.reduce((sum, x) => sum + x * x, 0));
const cosine = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, x, i) => sum + x * b[i], 0) / (norm(a) * norm(b));
const parts: LossPart[] = ['task', 'entropy', 'kl'];

describe('gradient analysis', () => {
  it('reports the norm of each part, and the angles between parts and between buckets', async () => {
    const policy = load();
    const batches = [await samples(policy, 6, 1), await samples(policy, 5, 2)];
    const found = await analyseGradients(
      policy,
      batches.map(batch => [batch]),
      wholeBatch,
      goldenLoss,
      0,
    );
    expect(found.parts).toEqual(parts);
    const gradients: Float32Array[] = [];
    for (const batch of batches) for (const part of parts) gradients.push(await gradientOf(batch, part));
    const norms = found.buckets.flatMap(bucket => bucket.gradients.map(gradient => gradient.norm));
    expect(relativeError(norms, gradients.map(norm))).toBeLessThan(1e-4);
    gradients.forEach((a, i) =>
      gradients.forEach((b, j) => expect(found.cosines[i][j], `${i},${j}`).toBeCloseTo(cosine(a, b), 4)),
    );
  });

  it('averages norms over mini-batches, and computes the loss as an update does', async () => {
    const policy = load();
    const batches = [await samples(policy, 4, 3), await samples(policy, 4, 4)];
    const { buckets } = await analyseGradients(policy, [batches], wholeBatch, goldenLoss, 0);
    const updates = [];
    for (const batch of batches) updates.push(await load().update(batch, wholeBatch, goldenLoss, goldenOptimizer));
    for (const [i, part] of parts.entries()) {
      const [a, b] = [norm(await gradientOf(batches[0], part)), norm(await gradientOf(batches[1], part))];
      expect(buckets[0].gradients[i].norm).toBeCloseTo((a + b) / 2, 4);
    }
    for (const key of ['pg_loss', 'entropy_loss', 'kl_loss', 'entropy', 'pg_clipfrac'])
      expect(buckets[0].metrics[key], key).toBeCloseTo((updates[0][key] + updates[1][key]) / 2, 5);
  });

  it('leaves weights and optimizer unchanged', async () => {
    const [policy, other] = [load(), load()];
    const batch = await samples(policy, 4, 5);
    await analyseGradients(policy, [[batch]], wholeBatch, goldenLoss, 0);
    for (const each of [policy, other]) await each.update(batch, wholeBatch, goldenLoss, goldenOptimizer);
    expect((await policy.bank.read()).flat).toEqual((await other.bank.read()).flat);
    expect(await policy.bank.moments()).toEqual(await other.bank.moments());
  });

  it('separates signal from noise: equal samples have no noise, samples of opposite advantage no signal', async () => {
    const policy = load();
    const [one] = await samples(policy, 1, 6);
    const task = { ...goldenLoss, entropy_coeff: 0, use_kl_loss: false };
    const opposite = { ...one, advantages: one.advantages.map(x => -x) };
    const mixed = await samples(policy, 8, 7);
    const { parts: found, buckets } = await analyseGradients(
      policy,
      [[[one, one, one, one]], [[one, opposite, one, opposite]], [mixed], [[one]]],
      wholeBatch,
      task,
      0,
    );
    expect(found).toEqual(['task']);
    const [equal, cancelling, some, single] = buckets.map(({ gradients }) => gradients[0]);
    expect(equal.snr === null || equal.snr > 1e6).toBe(true);
    expect(cancelling.norm).toBeLessThan(1e-3 * equal.norm);
    expect(cancelling.snr).toBeLessThan(1e-4);
    expect(some.snr).toBeGreaterThan(0.1);
    expect(some.snr).toBeLessThan(100);
    expect(single.snr).toBeNull();
  });

  it('keeps angles approximately when gradients are sketched', async () => {
    const policy = load();
    const buckets = [[await samples(policy, 6, 8)], [await samples(policy, 6, 9)]];
    const exact = await analyseGradients(policy, buckets, wholeBatch, goldenLoss, 0);
    const sketched = await analyseGradients(policy, buckets, wholeBatch, goldenLoss, 0, 2048);
    expect((await policy.bank.read()).flat.length).toBeGreaterThan(2 * 2048);
    exact.cosines.forEach((row, i) =>
      row.forEach((x, j) => expect(Math.abs(x! - sketched.cosines[i][j]!), `${i},${j}`).toBeLessThan(0.15)),
    );
    expect(sketched.buckets.map(b => b.gradients.map(g => g.norm))).toEqual(
      exact.buckets.map(b => b.gradients.map(g => g.norm)),
    );
  });
});
