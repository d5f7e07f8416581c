// Weights and statistics against hand-computed values, from ratios that are powers of two.
import { describe, expect, it } from 'vitest';
import { rolloutWeights } from '../../../extension/algorithms/rollout-correction';
import type { CorrectionBatch } from '../../../extension/algorithms/rollout-correction';

const ln = (...xs: number[]): Float32Array => Float32Array.from(xs, Math.log);

/**
 * Probabilities under the training graph and the sampler; values where the mask is 0 must not matter.
 * Token ratios: 2, ½ and 4 in the first episode (product 4); 1 and ½ in the second (product ½); the third has no
 * sampled token.
 */
const batch: CorrectionBatch = {
  old: [ln(0.9, 0.5, 0.25, 1, 0.1), ln(0.25, 0.25, 0.7), ln(0.1)],
  rollout: [ln(0.1, 0.25, 0.5, 0.25, 0.9), ln(0.25, 0.5, 0.1), ln(0.9)],
  masks: [Uint8Array.of(0, 1, 1, 1, 0), Uint8Array.of(1, 1, 0), Uint8Array.of(0)],
};
function expectMetrics(actual: Record<string, number>, expected: Record<string, number>): void {
  expect(Object.keys(actual).sort()).toEqual(Object.keys(expected).sort());
  for (const [key, value] of Object.entries(expected)) expect(actual[key], key).toBeCloseTo(value, 5);
}
const round = (rows: readonly Float32Array[]): number[][] =>
  rows.map(row => Array.from(row, x => Number(x.toFixed(5))));

describe('importance weights', () => {
  it('equal the token ratios, capped at the threshold', () => {
    const { weights } = rolloutWeights(batch, { rollout_is: 'token', rollout_is_threshold: 3 });
    expect(round(weights)).toEqual([[1, 2, 0.5, 3, 1], [1, 0.5, 1], [1]]);
  });

  it('equal the products of the token ratios per episode', () => {
    const { weights } = rolloutWeights(batch, { rollout_is: 'sequence', rollout_is_threshold: 3 });
    expect(round(weights)).toEqual([[1, 3, 3, 3, 1], [0.5, 0.5, 1], [1]]);
  });

  it('are 1 when only statistics are requested', () => {
    const { weights } = rolloutWeights(batch, { rollout_is: null, rollout_is_threshold: 3 });
    expect(round(weights)).toEqual([[1, 1, 1, 1, 1], [1, 1, 1], [1]]);
  });

  it('stay finite for any log-probs', () => {
    const far = { old: [Float32Array.of(0, -900)], rollout: [Float32Array.of(-900, 0)], masks: [Uint8Array.of(1, 1)] };
    const { weights, metrics } = rolloutWeights(far, { rollout_is: 'token', rollout_is_threshold: 1e12 });
    expect(Math.log(weights[0][0])).toBeCloseTo(20, 4);
    expect(Math.log(weights[0][1])).toBeCloseTo(-20, 4);
    for (const [key, value] of Object.entries(metrics)) expect(Number.isFinite(value), key).toBe(true);
  });
});

describe('statistics', () => {
  const d = Math.LN2;
  const common = {
    // Log-ratios of the five tokens: ln 2, −ln 2, 2 ln 2, 0, −ln 2.
    'rollout_corr/kl': -d / 5,
    'rollout_corr/k3_kl': (2 + 0.5 + 4 + 1 + 0.5 - 5 - d) / 5,
    'rollout_corr/chi2_token': (4 + 0.25 + 16 + 1 + 0.25) / 5 - 1,
    'rollout_corr/prob_diff_mean': (0.25 + 0.25 + 0.75 + 0 + 0.25) / 5,
    // exp(−mean log-prob): of ½ · ¼ · 1 and of ¼ · ¼; of ¼ · ½ · ¼ and of ¼ · ½.
    'rollout_corr/training_ppl': (2 + 4) / 2,
    'rollout_corr/rollout_ppl': (2 ** (5 / 3) + 2 ** 1.5) / 2,
  };

  it('are reported without weights', () => {
    expectMetrics(rolloutWeights(batch, { rollout_is: null, rollout_is_threshold: 3 }).metrics, common);
  });

  it('match token ratios 2, ½, 4, 1, ½, clamped between ⅓ and 3', () => {
    const held = [2, 0.5, 3, 1, 0.5];
    const mean = 7 / 5;
    const square = held.reduce((sum, x) => sum + x * x, 0) / 5;
    expectMetrics(rolloutWeights(batch, { rollout_is: 'token', rollout_is_threshold: 3 }).metrics, {
      ...common,
      'rollout_corr/rollout_is_mean': 8 / 5,
      'rollout_corr/rollout_is_std': Math.sqrt(square - mean ** 2),
      'rollout_corr/rollout_is_max': 4,
      'rollout_corr/rollout_is_min': 0.5,
      'rollout_corr/rollout_is_ratio_fraction_high': 1 / 5,
      'rollout_corr/rollout_is_ratio_fraction_low': 0,
      'rollout_corr/rollout_is_eff_sample_size': mean ** 2 / square,
    });
  });

  it('match episode ratios 4 over three tokens and ½ over two, clamped between ⅔ and 1.5', () => {
    const held = [1.5, 1.5, 1.5, 2 / 3, 2 / 3];
    const mean = held.reduce((sum, x) => sum + x) / 5;
    const square = held.reduce((sum, x) => sum + x * x, 0) / 5;
    expectMetrics(rolloutWeights(batch, { rollout_is: 'sequence', rollout_is_threshold: 1.5 }).metrics, {
      ...common,
      'rollout_corr/rollout_is_mean': 13 / 5,
      'rollout_corr/rollout_is_std': Math.sqrt(square - mean ** 2),
      'rollout_corr/rollout_is_max': 4,
      'rollout_corr/rollout_is_min': 0.5,
      'rollout_corr/rollout_is_ratio_fraction_high': 0.5,
      'rollout_corr/rollout_is_ratio_fraction_low': 0.5,
      'rollout_corr/rollout_is_eff_sample_size': mean ** 2 / square,
    });
  });

  it('are numbers for an empty batch', () => {
    const { weights, metrics } = rolloutWeights(
      { old: [], rollout: [], masks: [] },
      { rollout_is: 'token', rollout_is_threshold: 2 },
    );
    expect(weights).toEqual([]);
    for (const [key, value] of Object.entries(metrics)) expect(value, key).toBe(0);
  });
});
