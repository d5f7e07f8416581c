// The losses of GSPO, CISPO, SAPO, GMPO, Clip-Cov and KL-Cov in the training graph against PyTorch
// (test/golden/make/policy_losses.py) and against verl's own code (verl_algorithms.py): the loss, the clip fraction, and the
// gradient of every parameter, however the samples are packed.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { WeightedSample } from '../../../../extension/engine/training-samples';
import { aggregationWeights } from '../../../../extension/algorithms/loss-aggregation';
import { tensorsOf } from '../../../golden/tensors';
import {
  goldenConfig,
  goldenLoss,
  goldenWeights,
  relativeError,
  trainedPolicy,
  wholeBatch,
} from '../../../support/small-models';

const golden = tensorsOf('test/golden/policy-losses/golden.safetensors');
const verl = z
  .object({ losses: z.record(z.string(), z.object({ loss: z.number(), clipfrac: z.number().nullable() })) })
  .parse(JSON.parse(readFileSync('test/golden/verl-algorithms.json', 'utf8'))).losses;
const of = (name: string): Float32Array => golden.get(name)!.data;
const [b, t] = golden.get('ids')!.dims;
/** Golden vectors cover tokens 1…t−1; these arrays also have an entry for token 0. */
const shifted = (name: string, row: number): Float32Array =>
  Float32Array.from([0, ...of(name).subarray(row * (t - 1), (row + 1) * (t - 1))]);
const masks = Array.from({ length: b }, (_, row) => Uint8Array.from(shifted('mask', row)));
const lengths = masks.map(mask => mask.reduce((sum, bit) => sum + bit, 0));
/** As in the script. The share is so large that Clip-Cov leaves out every candidate, whatever its random choice. */
const covariance = { clip_cov_ratio: 0.5, clip_cov_lb: 0.05, clip_cov_ub: 5, kl_cov_ratio: 0.15, ppo_kl_coef: 0.5 };
const still = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };

describe.each([
  { loss_mode: 'gspo', loss_agg_mode: 'seq-mean-token-mean' },
  { loss_mode: 'cispo', loss_agg_mode: 'token-mean' },
  { loss_mode: 'sapo', loss_agg_mode: 'seq-mean-token-mean' },
  { loss_mode: 'geo_mean', loss_agg_mode: 'seq-mean-token-mean' },
  { loss_mode: 'clip_cov', loss_agg_mode: 'token-mean' },
  { loss_mode: 'kl_cov', loss_agg_mode: 'token-mean' },
] as const)('$loss_mode', ({ loss_mode, loss_agg_mode }) => {
  const weights = aggregationWeights(lengths, loss_agg_mode, t);
  const samples = masks.map((mask, row): WeightedSample => ({
    ids: Int32Array.from(of('ids').subarray(row * t, (row + 1) * t)),
    mask,
    old_logprobs: shifted('old', row),
    ref_logprobs: new Float32Array(t),
    advantages:
      loss_mode === 'geo_mean' ? new Float32Array(t).fill(of('sequence_advantage')[row]) : shifted('advantage', row),
    weights: new Float32Array(t).fill(weights[row]),
  }));
  const loss = {
    ...goldenLoss,
    policy_loss: { loss_mode, ...covariance },
    loss_agg_mode,
    clip_ratio_low: 0.05,
    clip_ratio_high: 0.08,
    tau_pos: 0.8,
    tau_neg: 1.3,
    entropy_coeff: 0,
    use_kl_loss: false,
    temperature: 1,
  };

  it.each([
    ['in one pass', wholeBatch],
    ['in passes of two', { maxTokens: 2 * t, maxRows: 2 }],
  ] as const)("%s: equals PyTorch's loss", async (_, budget) => {
    const policy = trainedPolicy(goldenConfig('qwen2'), goldenWeights('qwen2'));
    const metrics = await policy.update(samples, budget, loss, still);
    const [expected, clipfrac, kl] = of(loss_mode);
    expect(metrics.pg_loss).toBeCloseTo(expected, 5);
    expect(metrics.pg_loss).toBeCloseTo(verl[loss_mode].loss, 5);
    expect(metrics.pg_clipfrac).toBeCloseTo(clipfrac, 6);
    expect(metrics.pg_clipfrac).toBeCloseTo(verl[loss_mode].clipfrac ?? clipfrac, 6); // verl has none for kl_cov
    if (loss_mode !== 'sapo') expect(clipfrac).toBeGreaterThan(0.1);
    if (loss_mode !== 'geo_mean') expect(metrics.pg_clipfrac_lower).toBe(0);
    expect(metrics.ppo_kl).toBeCloseTo(kl, 5);
    const gradient = await policy.bank.readGradient();
    for (const { name } of policy.bank.specs)
      expect(relativeError(gradient.view(name), of(`${loss_mode}.grad.${name}`)), name).toBeLessThan(1e-4);
  });
});
