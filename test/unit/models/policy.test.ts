// Steps of a policy: on-policy surrogate, any micro-batch split, samples without trained tokens, supervised training,
// non-finite values.
import { describe, expect, it } from 'vitest';
import { policyLoss } from '../../../extension/algorithms/policy-loss';
import type { OptimizerOptions, PolicyLossOptions } from '../../../extension/engine/loss-options';
import type { WeightedSample } from '../../../extension/engine/training-samples';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import type { Policy } from '../../../extension/models/policy';
import { goldenConfig, goldenWeights, relativeError, trainedPolicy, wholeBatch } from '../../support/small-models';

const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 1,
};
const optimizer: OptimizerOptions = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
const config = goldenConfig('qwen2');
const load = (): Policy => trainedPolicy(config, goldenWeights('qwen2'));

/** Samples of the given lengths, with three of every five tokens trained on, under the policy's own log-probs. */
async function onPolicy(policy: Policy, lengths: number[], advantage: () => number): Promise<WeightedSample[]> {
  const stream = new RandomStream(8);
  const samples = lengths.map(length => ({
    ids: Int32Array.from({ length }, () => stream.integer(config.vocabSize)),
    mask: Uint8Array.from({ length }, (_, i) => (i > 0 && i % 5 > 1 ? 1 : 0)),
  }));
  const total = samples.reduce((n, { mask }) => n + mask.reduce((a, b) => a + b, 0), 0);
  const { logprobs } = await policy.score(samples, wholeBatch, loss.temperature);
  return samples.map((sample, i) => ({
    ...sample,
    old_logprobs: logprobs[i],
    ref_logprobs: logprobs[i],
    advantages: Float32Array.from(sample.mask, () => advantage()),
    weights: new Float32Array(sample.mask.length).fill(1 / total),
  }));
}

describe('an update', () => {
  it('with advantage 1 and unchanged weights has the loss −1, and nothing is clipped', async () => {
    const policy = load();
    const samples = await onPolicy(policy, [9, 14, 3, 11], () => 1);
    const metrics = await policy.update(samples, wholeBatch, loss, optimizer);
    expect(metrics.pg_loss).toBeCloseTo(-1, 5);
    expect(metrics).toMatchObject({ pg_clipfrac: 0, pg_clipfrac_lower: 0, skipped: 0, lr: 1e-3 });
    expect(metrics.ppo_kl).toBeCloseTo(0, 6);
    expect(metrics.grad_norm).toBeGreaterThan(0);
  });

  it('raises the probability of rewarded samples and lowers that of penalized ones', async () => {
    for (const advantage of [1, -1]) {
      const policy = load();
      const samples = await onPolicy(policy, [9, 14], () => advantage);
      await policy.update(samples, wholeBatch, loss, optimizer);
      const { logprobs } = await policy.score(samples, wholeBatch, 1);
      const gain = samples.reduce(
        (sum, { old_logprobs }, s) => sum + logprobs[s].reduce((a, x, i) => a + x - old_logprobs[i], 0),
        0,
      );
      expect(Math.sign(gain)).toBe(advantage);
    }
  });

  it('gives the same result however a mini-batch is split, for any mix of lengths', async () => {
    const stream = new RandomStream(1);
    const options = { ...loss, entropy_coeff: 0.01, use_kl_loss: true, kl_loss_coef: 0.1 };
    const budgets = [
      wholeBatch,
      { maxTokens: Infinity, maxRows: 3 },
      { maxTokens: 40, maxRows: 6 },
      { maxTokens: 1, maxRows: 6 },
    ];
    const policies = budgets.map(load);
    const samples = await onPolicy(policies[0], [4, 17, 9, 30, 2, 12], () => stream.normal());
    for (const sample of samples) sample.ref_logprobs = sample.ref_logprobs.map(x => x + 0.3 * stream.normal());
    const results = [];
    for (const [i, budget] of budgets.entries())
      results.push(await policies[i].update(samples, budget, options, optimizer));
    const gradients = await Promise.all(policies.map(policy => policy.bank.readGradient()));
    for (const [i, metrics] of results.entries()) {
      expect(Object.keys(metrics)).toEqual(Object.keys(results[0]));
      for (const key of Object.keys(metrics)) expect(metrics[key], key).toBeCloseTo(results[0][key], 5);
      for (const { name } of policies[0].bank.specs)
        expect(relativeError(gradients[i].view(name), gradients[0].view(name)), name).toBeLessThan(1e-5);
    }
  });

  it('ignores samples without trained tokens', async () => {
    const [policy, other] = [load(), load()];
    const samples = await onPolicy(policy, [9, 14], () => 1);
    const bare: WeightedSample = { ...samples[0], mask: new Uint8Array(samples[0].ids.length) };
    const metrics = await policy.update(samples, wholeBatch, loss, optimizer);
    const same = await other.update([...samples, bare, bare], wholeBatch, loss, optimizer);
    for (const key of Object.keys(metrics)) expect(same[key], key).toBeCloseTo(metrics[key], 5);
    expect(relativeError((await other.bank.read()).flat, (await policy.bank.read()).flat)).toBeLessThan(1e-6);
    expect((await policy.score([bare], wholeBatch, 1)).logprobs).toEqual([new Float32Array(9)]);
  });

  it.each([NaN, Infinity])(
    'with an advantage of %f is skipped, reports it, and leaves the policy usable',
    async bad => {
      const policy = load();
      const samples = await onPolicy(policy, [9], () => 1);
      const broken = [{ ...samples[0], advantages: new Float32Array(9).fill(bad) }];
      const { flat } = await policy.bank.read();
      const before = flat.slice();
      const metrics = await policy.update(broken, wholeBatch, loss, optimizer);
      expect(metrics.skipped).toBe(1);
      expect(Number.isFinite(metrics.grad_norm)).toBe(false);
      expect(flat).toEqual(before);
      expect((await policy.update(samples, wholeBatch, loss, optimizer)).skipped).toBe(0);
      expect(flat).not.toEqual(before);
    },
  );

  it('has the metrics of the reference loss after the weights have moved', async () => {
    const policy = load();
    const samples = await onPolicy(policy, [9, 14, 6], () => 1);
    for (let step = 0; step < 3; step++) await policy.update(samples, wholeBatch, loss, { ...optimizer, lr: 0.02 });
    const { logprobs, entropies } = await policy.score(samples, wholeBatch, loss.temperature);
    const sequences = samples.map((sample, i) => ({ ...sample, logprobs: logprobs[i], entropies: entropies[i] }));
    const plain = policyLoss(sequences, loss);
    const metrics = await policy.update(samples, wholeBatch, loss, optimizer);
    expect(plain.pg_clipfrac).toBeGreaterThan(0);
    for (const key of ['pg_loss', 'pg_clipfrac', 'pg_clipfrac_lower', 'ppo_kl', 'entropy'] as const)
      expect(metrics[key], key).toBeCloseTo(plain[key], 4);
  });
});

describe('supervised training', () => {
  it("descends the mean cross-entropy: its gradient equals an update's with advantage 1", async () => {
    const [policy, other] = [load(), load()];
    const samples = await onPolicy(policy, [9, 14, 6], () => 1);
    const count = samples.reduce((n, { mask }) => n + mask.reduce((a, b) => a + b, 0), 0);
    const sum = samples.reduce((total, { old_logprobs }) => total + old_logprobs.reduce((a, b) => a + b, 0), 0);
    expect(await policy.trainSupervised(samples, wholeBatch, optimizer)).toBeCloseTo(-sum / count, 4);
    await other.update(samples, wholeBatch, loss, optimizer);
    const [own, others] = [await policy.bank.readGradient(), await other.bank.readGradient()];
    for (const { name } of policy.bank.specs)
      expect(relativeError(own.view(name), others.view(name)), name).toBeLessThan(1e-5);
  });

  it('memorizes a sequence', async () => {
    const policy = load();
    const samples = [{ ids: Int32Array.of(1, 9, 4, 4, 30, 2), mask: Uint8Array.of(0, 1, 1, 1, 1, 1) }];
    let last = Infinity;
    for (let step = 0; step < 30; step++)
      last = await policy.trainSupervised(samples, wholeBatch, { ...optimizer, lr: 0.02 });
    expect(last).toBeLessThan(0.1);
  });
});
