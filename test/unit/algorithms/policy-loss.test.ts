// The surrogate's bounds, the KL estimators, the four aggregations and the metrics, against hand-computed values.
import { describe, expect, it } from 'vitest';
import { klInReward, tokenKl } from '../../../extension/algorithms/kl';
import { nextKlCoefficient } from '../../../extension/algorithms/kl-controller';
import { aggregationWeights } from '../../../extension/algorithms/loss-aggregation';
import { cispoTokenLoss } from '../../../extension/algorithms/cispo';
import { tokenPolicyLoss } from '../../../extension/algorithms/clipped-surrogate';
import { gspoTokenLoss, sequenceLogRatio } from '../../../extension/algorithms/gspo';
import { policyLoss } from '../../../extension/algorithms/policy-loss';
import type { PolicyLossSettings } from '../../../extension/algorithms/policy-loss-options';
import { expectNumbers } from './expect-numbers';

const clip = { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3 };
const settings: PolicyLossSettings = {
  ...clip,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'kl',
  loss_agg_mode: 'token-mean',
};

describe('surrogate loss of one token', () => {
  it.each([
    { ratio: 1.5, advantage: 1, loss: -1.28, clipped: true, clippedLower: false },
    { ratio: 0.5, advantage: -1, loss: 0.8, clipped: true, clippedLower: false },
    { ratio: 5, advantage: -1, loss: 3, clipped: false, clippedLower: true },
    { ratio: 1.1, advantage: 1, loss: -1.1, clipped: false, clippedLower: false },
    { ratio: 0.5, advantage: 1, loss: -0.5, clipped: false, clippedLower: false },
  ])('ρ $ratio, A $advantage → $loss', ({ ratio, advantage, loss, clipped, clippedLower }) => {
    const token = tokenPolicyLoss(Math.log(ratio), advantage, clip);
    expect(token.loss).toBeCloseTo(loss, 6);
    expect(token).toMatchObject({ clipped, clippedLower });
  });

  it('clamps the log-ratio at ±20', () => {
    expect(tokenPolicyLoss(-500, 1, clip).loss).toBeCloseTo(-Math.exp(-20), 15);
  });
});

describe('GSPO', () => {
  // log-ratios .1, −.3 and .5 over three sampled tokens: mean .1, ratio e^.1 for all of them
  const logprobs = Float32Array.of(-1, -9, -1.5, -0.5);
  const old = Float32Array.of(-1.1, 0, -1.2, -1);
  const mask = Uint8Array.of(1, 0, 1, 1);

  it('has one ratio per sequence, the geometric mean of its token ratios', () => {
    expect(sequenceLogRatio(logprobs, old, mask)).toBeCloseTo(0.1, 6);
    expect(sequenceLogRatio(logprobs, old, new Uint8Array(4))).toBe(0);
  });

  it.each([
    { logRatio: 0.1, advantage: 2, loss: -2 * Math.exp(0.1), slope: -2 * Math.exp(0.1), clipped: false },
    { logRatio: 0.5, advantage: 2, loss: -2.56, slope: 0, clipped: true },
    { logRatio: 0.5, advantage: -2, loss: 2 * Math.exp(0.5), slope: 2 * Math.exp(0.5), clipped: false },
    { logRatio: -1, advantage: -2, loss: 1.6, slope: 0, clipped: true },
    { logRatio: 11, advantage: -1, loss: Math.exp(10), slope: 0, clipped: false },
  ])('log s $logRatio, A $advantage → $loss', ({ logRatio, advantage, loss, slope, clipped }) => {
    const token = gspoTokenLoss(logRatio, advantage, clip);
    expect(token.loss).toBeCloseTo(loss, 9);
    expect(token.slope).toBeCloseTo(slope, 9);
    expect(token).toMatchObject({ clipped, clippedLower: false });
  });

  it('gives all tokens of a sequence its ratio, and applies no dual clip', () => {
    const sequence = { logprobs, old_logprobs: old, mask, advantages: Float32Array.of(1, 1, 1, 1) };
    const gspo = { ...settings, policy_loss: { loss_mode: 'gspo' }, loss_agg_mode: 'seq-mean-token-mean' } as const;
    const loss = policyLoss([sequence], gspo);
    expect(loss.pg_loss).toBeCloseTo(-Math.exp(0.1), 6);
    expect(loss).toMatchObject({ pg_clipfrac: 0, pg_clipfrac_lower: 0 });
    expect(loss.ppo_kl).toBeCloseTo(-0.1, 6);
    const punished = policyLoss(
      [{ ...sequence, advantages: sequence.advantages.map(() => -1), old_logprobs: old.map(x => x - 2) }],
      gspo,
    );
    expect(punished.pg_loss).toBeCloseTo(Math.exp(2.1), 5);
    expect(punished.pg_clipfrac_lower).toBe(0);
  });
});

describe('CISPO', () => {
  it.each([
    { logRatio: 0.1, advantage: 2, weight: Math.exp(0.1), clipped: false },
    { logRatio: 0.5, advantage: 2, weight: 1.28, clipped: true },
    { logRatio: -1, advantage: 2, weight: 0.8, clipped: true },
    { logRatio: 5, advantage: -1, weight: 1.28, clipped: true },
  ])('weights −A log π by $weight at log ρ $logRatio', ({ logRatio, advantage, weight, clipped }) => {
    const token = cispoTokenLoss(-1.5, logRatio, advantage, clip);
    expect(token.loss).toBeCloseTo(weight * advantage * 1.5, 9);
    expect(token.slope).toBeCloseTo(-weight * advantage, 9);
    expect(token).toMatchObject({ clipped, clippedLower: false });
  });
});

describe('KL', () => {
  it.each([
    ['kl', 0.3],
    ['k1', 0.3],
    ['abs', 0.3],
    ['mse', 0.045],
    ['k2', 0.045],
    ['low_var_kl', 0.0408182],
    ['k3', 0.0408182],
  ] as const)('%s of .3 is %f', (kind, expected) => expect(tokenKl(kind, 0.3)).toBeCloseTo(expected, 6));

  it('keeps the sign of the difference only for signed estimators', () => {
    expect(tokenKl('k1', -0.3)).toBe(-0.3);
    expect(tokenKl('abs', -0.3)).toBe(0.3);
    expect(tokenKl('k3', -0.3)).toBeCloseTo(Math.exp(0.3) - 1.3, 12);
    expect(tokenKl('k3', -50)).toBe(10);
    expect(tokenKl('k3', -Infinity)).toBe(10);
  });

  it('is subtracted from the reward of sampled tokens', () => {
    const { rewards, meanKl } = klInReward(
      {
        rewards: Float32Array.of(0, 0, 1),
        logprobs: Float32Array.of(-1, -1, -1),
        ref_logprobs: Float32Array.of(-2, -9, -1.5),
        mask: Uint8Array.of(1, 0, 1),
      },
      'k1',
      0.1,
    );
    expectNumbers(rewards, [-0.1, 0, 0.95]);
    expect(meanKl).toBeCloseTo(0.75, 6);
  });

  it('changes the adaptive coefficient by at most a fifth of n/horizon', () => {
    const control = { type: 'adaptive', kl_coef: 0.1, target_kl: 0.1, horizon: 10000 } as const;
    expect(nextKlCoefficient(control, 0.1, 0.2, 128)).toBeCloseTo(0.100256, 9);
    expect(nextKlCoefficient(control, 0.1, 0, 128)).toBeCloseTo(0.1 * (1 - (0.2 * 128) / 10000), 9);
    expect(nextKlCoefficient({ ...control, type: 'fixed' }, 0.1, 5, 128)).toBe(0.1);
  });
});

describe('aggregation', () => {
  const lengths = [1, 3, 0];
  it.each([
    ['token-mean', [0.25, 0.25, 0]],
    ['seq-mean-token-sum', [1 / 3, 1 / 3, 0]],
    ['seq-mean-token-mean', [1 / 3, 1 / 9, 0]],
    ['seq-mean-token-sum-norm', [1 / 12, 1 / 12, 0]],
  ] as const)('by %s gives each token its weight', (mode, expected) =>
    expectNumbers(aggregationWeights(lengths, mode, 12), [...expected]),
  );
});

describe('policy loss', () => {
  const sequence = (logRatios: number[], advantages: number[], mask: number[]) => ({
    logprobs: Float32Array.from(logRatios),
    old_logprobs: new Float32Array(logRatios.length),
    advantages: Float32Array.from(advantages),
    mask: Uint8Array.from(mask),
    entropies: Float32Array.from(logRatios, () => 2),
    ref_logprobs: Float32Array.from(logRatios, value => value - 0.3),
  });
  const batch = [
    sequence([Math.log(1.5), 99, Math.log(5)], [1, 99, -1], [1, 0, 1]),
    sequence([Math.log(0.5), 0], [-1, 99], [1, 0]),
  ];

  it('is −1 for unchanged weights and advantage 1', () => {
    const { loss, ppo_kl } = policyLoss([sequence([0, 0], [1, 1], [1, 1])], settings);
    expect(loss).toBeCloseTo(-1, 7);
    expect(ppo_kl).toBeCloseTo(0, 12);
  });

  it('averages over sampled tokens, with its metrics', () => {
    const result = policyLoss(batch, settings);
    expect(result.pg_loss).toBeCloseTo((-1.28 + 3 + 0.8) / 3, 6);
    expect(result.pg_clipfrac).toBeCloseTo(2 / 3, 6);
    expect(result.pg_clipfrac_lower).toBeCloseTo(1 / 3, 6);
    expect(result.ppo_kl).toBeCloseTo(-(Math.log(1.5) + Math.log(5) + Math.log(0.5)) / 3, 6);
    expect(result.loss).toBe(result.pg_loss);
  });

  it.each([
    ['seq-mean-token-sum', (-1.28 + 3 + 0.8) / 2],
    ['seq-mean-token-mean', ((-1.28 + 3) / 2 + 0.8) / 2],
    ['seq-mean-token-sum-norm', (-1.28 + 3 + 0.8) / 3],
  ] as const)('aggregates by %s', (loss_agg_mode, expected) =>
    expect(policyLoss(batch, { ...settings, loss_agg_mode }).pg_loss).toBeCloseTo(expected, 6),
  );

  it('subtracts the entropy bonus and adds the KL loss', () => {
    const result = policyLoss(batch, {
      ...settings,
      entropy_coeff: 0.01,
      use_kl_loss: true,
      kl_loss_coef: 0.1,
      kl_loss_type: 'k2',
    });
    expect(result.entropy).toBeCloseTo(2, 6);
    expect(result.kl_loss).toBeCloseTo(0.045, 6);
    expect(result.loss).toBeCloseTo((-1.28 + 3 + 0.8) / 3 - 0.01 * 2 + 0.1 * 0.045, 6);
  });

  it('names the arrays that the settings require', () => {
    const bare = [{ ...batch[0], entropies: undefined, ref_logprobs: undefined }];
    expect(() => policyLoss(bare, { ...settings, entropy_coeff: 0.1 })).toThrow('no entropies');
    expect(() => policyLoss(bare, { ...settings, use_kl_loss: true })).toThrow('no ref_logprobs');
  });
});
