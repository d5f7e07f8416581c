// Properties of truncated importance weights, for any log-probs.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rolloutWeights } from '../../../extension/algorithms/rollout-correction';
import type { CorrectionBatch, RolloutCorrection } from '../../../extension/algorithms/rollout-correction';

const logprob = fc.double({ min: -30, max: 0, noNaN: true }).map(Math.fround);
const token = fc.record({ old: logprob, rollout: logprob, on: fc.boolean() });
const batches = fc
  .array(fc.array(token, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 })
  .map((rows): CorrectionBatch => ({
    old: rows.map(row => Float32Array.from(row, t => t.old)),
    rollout: rows.map(row => Float32Array.from(row, t => t.rollout)),
    masks: rows.map(row => Uint8Array.from(row, t => Number(t.on))),
  }));
const settings: fc.Arbitrary<RolloutCorrection> = fc.record({
  rollout_is: fc.constantFrom('token', 'sequence', null),
  rollout_is_threshold: fc.constantFrom(1, 1.5, 2, 10),
});

describe('importance weights', () => {
  it('are positive, at most the threshold, and 1 where nothing was sampled or correction is off', () => {
    fc.assert(
      fc.property(batches, settings, (batch, options) => {
        const { weights } = rolloutWeights(batch, options);
        weights.forEach((row, i) => {
          expect(row.length).toBe(batch.masks[i].length);
          row.forEach((w, t) => {
            if (!batch.masks[i][t] || options.rollout_is === null) expect(w).toBe(1);
            expect(w).toBeGreaterThan(0);
            expect(w).toBeLessThanOrEqual(options.rollout_is_threshold);
          });
        });
      }),
    );
  });

  it('are all 1 when the sampler is the trained policy, and all distances are 0', () => {
    fc.assert(
      fc.property(batches, settings, ({ old, masks }, options) => {
        const { weights, metrics } = rolloutWeights({ old, rollout: old, masks }, options);
        for (const row of weights) expect(row.every(w => w === 1)).toBe(true);
        for (const key of ['kl', 'k3_kl', 'chi2_token', 'prob_diff_mean'])
          expect(metrics[`rollout_corr/${key}`]).toBeCloseTo(0, 12);
        expect(metrics['rollout_corr/training_ppl']).toBe(metrics['rollout_corr/rollout_ppl']);
        const own = options.rollout_is !== null && masks.some(mask => mask.includes(1));
        expect(metrics['rollout_corr/rollout_is_eff_sample_size']).toBe(own ? 1 : undefined);
      }),
    );
  });

  it('are one number per episode in sequence mode: the truncated product of its token ratios', () => {
    fc.assert(
      fc.property(batches, batch => {
        const { weights } = rolloutWeights(batch, { rollout_is: 'sequence', rollout_is_threshold: 2 });
        batch.masks.forEach((mask, i) => {
          const sampled = [...mask.keys()].filter(t => mask[t]);
          const log = sampled.reduce((sum, t) => sum + batch.old[i][t] - batch.rollout[i][t], 0);
          const expected = Math.min(Math.exp(Math.max(log, -20)), 2);
          for (const t of sampled) expect(weights[i][t] / expected).toBeCloseTo(1, 4);
        });
      }),
    );
  });

  it('do not depend on the order of episodes or on unsampled tokens, and neither do the statistics', () => {
    fc.assert(
      fc.property(batches, settings, logprob, ({ old, rollout, masks }, options, other) => {
        const hidden = (rows: readonly Float32Array[]): Float32Array[] =>
          rows.map((row, i) => row.map((x, t) => (masks[i][t] ? x : other)));
        const found = rolloutWeights({ old, rollout, masks }, options);
        expect(rolloutWeights({ old: hidden(old), rollout: hidden(rollout), masks }, options)).toEqual(found);
        const turned = rolloutWeights(
          { old: [...old].reverse(), rollout: [...rollout].reverse(), masks: [...masks].reverse() },
          options,
        );
        expect(turned.weights.reverse()).toEqual(found.weights);
        for (const [key, value] of Object.entries(found.metrics))
          expect(Math.abs(turned.metrics[key] - value)).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(value)));
      }),
    );
  });

  it('have finite statistics within their ranges and in order', () => {
    fc.assert(
      fc.property(batches, settings, (batch, options) => {
        const { metrics } = rolloutWeights(batch, options);
        const n = (key: string): number => metrics[`rollout_corr/${key}`];
        for (const [key, value] of Object.entries(metrics)) expect(Number.isFinite(value), key).toBe(true);
        expect(n('k3_kl')).toBeGreaterThanOrEqual(-1e-9);
        if (n('rollout_is_mean') === undefined) return;
        expect(n('rollout_is_min')).toBeLessThanOrEqual(n('rollout_is_mean') * (1 + 1e-9));
        expect(n('rollout_is_mean')).toBeLessThanOrEqual(n('rollout_is_max') * (1 + 1e-9));
        expect(n('rollout_is_eff_sample_size')).toBeGreaterThan(0);
        expect(n('rollout_is_eff_sample_size')).toBeLessThanOrEqual(1 + 1e-9);
        expect(n('rollout_is_ratio_fraction_high') + n('rollout_is_ratio_fraction_low')).toBeLessThanOrEqual(1);
      }),
    );
  });
});
