// Scores and gradients of any samples do not depend on packing: with and without shared prefixes, padding and
// checkpointing, and with the output head computed in chunks.
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { PassBudget, WeightedSample } from '../../../../extension/engine/training-samples';
import type { PolicyLossOptions } from '../../../../extension/engine/loss-options';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session } from '../../../../extension/engine/session/session';
import { passCosts, planPasses } from '../../../../extension/models/graphs/pass-plan';
import type { Policy } from '../../../../extension/models/policy';
import { randomWeights, relativeError, tinyConfig, trainedPolicy, wholeBatch } from '../../../support/small-models';
import { batch, budget, groupedConfig as config } from './batches';

const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0.01,
  use_kl_loss: true,
  kl_loss_coef: 0.1,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 0.8,
};
const still = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
const single: PassBudget = { maxTokens: 1, maxRows: 1 };
const modes = ['vanilla', 'gspo', 'cispo'] as const;
type Mode = (typeof modes)[number];
const gradientOf = async (policy: Policy, samples: WeightedSample[], limits: PassBudget, loss_mode: Mode) => ({
  metrics: await policy.update(samples, limits, { ...loss, policy_loss: { loss_mode } }, still),
  gradient: (await policy.bank.readGradient()).flat.slice(),
});

/** Samples with random numbers; about half of their tokens are trained on. */
function randomSamples(ids: readonly { ids: Int32Array }[], seed: number): WeightedSample[] {
  const stream = new RandomStream(seed);
  return ids.map(({ ids }) => {
    const draw = (scale: number): Float32Array => Float32Array.from(ids, () => scale * stream.normal());
    return {
      ids,
      mask: Uint8Array.from(ids, (_, i) => (i > 0 ? stream.integer(2) : 0)),
      old_logprobs: draw(1).map(x => x - 2.5),
      ref_logprobs: draw(1).map(x => x - 2.5),
      advantages: draw(1),
      weights: new Float32Array(ids.length).fill(1 / 64),
    };
  });
}

describe('scores and gradients', () => {
  it('do not depend on how samples are packed, nor on checkpointing', async () => {
    const weights = randomWeights(config, 4);
    const [plain, checkpointed] = [false, true].map(checkpointed =>
      trainedPolicy(config, weights, { threads: 1, checkpointed }),
    );
    let shared = 0;
    await fc.assert(
      fc.asyncProperty(batch, budget, fc.integer(), fc.constantFrom(...modes), async (ids, limits, seed, mode) => {
        const samples = randomSamples(ids, seed);
        fc.pre(samples.some(({ mask }) => mask.includes(1)));
        const expected = await gradientOf(plain, samples, single, mode);
        const scores = await plain.score(samples, single, 0.8);
        const packings = [
          { policy: plain, limits },
          { policy: checkpointed, limits },
          { policy: checkpointed, limits: wholeBatch },
        ];
        for (const { policy, limits } of packings) {
          shared += Number(planPasses(samples, limits, passCosts(config)).some(pass => pass.shared));
          const { metrics, gradient } = await gradientOf(policy, samples, limits, mode);
          expect(relativeError(gradient, expected.gradient)).toBeLessThan(1e-5);
          for (const [name, x] of Object.entries(metrics))
            expect(Math.abs(x - expected.metrics[name]), name).toBeLessThan(1e-5 * Math.max(1, Math.abs(x)));
          const found = await policy.score(samples, limits, 0.8);
          for (const part of ['logprobs', 'entropies'] as const)
            found[part].forEach((row, i) => expect(relativeError(row, scores[part][i])).toBeLessThan(1e-5));
        }
      }),
      { numRuns: 16, seed: 2 },
    );
    expect(shared).toBeGreaterThan(8);
  });

  it.each(['vanilla', 'gspo'] as const)(
    'do not depend on the chunks in which tokens pass a head with a large vocabulary: %s',
    async mode => {
      const large = { ...tinyConfig, vocabSize: 120_001, maxPositions: 128 };
      const create = vi.spyOn(Session, 'create');
      const stream = new RandomStream(5);
      const ids = Array.from({ length: 3 }, () => ({
        ids: Int32Array.from({ length: 100 }, () => stream.integer(large.vocabSize)),
      }));
      const samples = randomSamples(ids, 6);
      const policy = trainedPolicy(large, randomWeights(large, 4));
      const [whole, apart] = [
        await gradientOf(policy, samples, wholeBatch, mode),
        await gradientOf(policy, samples, single, mode),
      ];
      const scores = [await policy.score(samples, wholeBatch, 0.8), await policy.score(samples, single, 0.8)];
      const parts = create.mock.calls.map(([{ name, inputs }]) => [
        name,
        inputs.find(({ name }) => name === 'chunk_sizes')?.dims[0],
      ]);
      create.mockRestore();
      // Passes with a trimmed last layer have another session with as many chunks.
      const made = parts.filter(([name]) => name === 'update' || name === 'score').map(String);
      expect([...new Set(made)]).toEqual(['update,2', 'update,', 'score,2', 'score,']);
      expect(relativeError(whole.gradient, apart.gradient)).toBeLessThan(1e-5);
      for (const [name, x] of Object.entries(whole.metrics))
        expect(Math.abs(x - apart.metrics[name]), name).toBeLessThan(1e-5 * Math.max(1, Math.abs(x)));
      for (const part of ['logprobs', 'entropies'] as const)
        scores[0][part].forEach((row, i) => expect(relativeError(row, scores[1][part][i])).toBeLessThan(1e-5));
    },
  );
});
