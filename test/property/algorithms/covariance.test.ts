// The tokens that Clip-Cov and KL-Cov select, for any batch: how many, from which tokens, and that the random selection
// depends on its seed alone and reaches every candidate.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectedTokens } from '../../../extension/algorithms/covariance';
import type { PolicyLossSettings } from '../../../extension/algorithms/policy-loss-options';

const token = fc.record({
  logprob: fc.double({ min: -8, max: 0, noNaN: true }),
  logRatio: fc.double({ min: -1, max: 1, noNaN: true }),
  advantage: fc.double({ min: -3, max: 3, noNaN: true }),
  on: fc.boolean(),
});
const batch = fc.array(fc.array(token, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 5 });
type Batch = typeof batch extends fc.Arbitrary<infer T> ? T : never;

const arrays = (rows: Batch) =>
  rows.map(row => ({
    logprobs: Float64Array.from(row, ({ logprob }) => logprob),
    old_logprobs: Float64Array.from(row, ({ logprob, logRatio }) => logprob - logRatio),
    advantages: Float64Array.from(row, ({ advantage }) => advantage),
    mask: Uint8Array.from(row, ({ on }) => Number(on)),
  }));

const settings = (policy_loss: PolicyLossSettings['policy_loss'], selection_seed = 0): PolicyLossSettings => ({
  ...{ clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3, entropy_coeff: 0 },
  ...{ use_kl_loss: false, kl_loss_coef: 0, kl_loss_type: 'kl', loss_agg_mode: 'token-mean' },
  policy_loss,
  selection_seed,
});

/** Every sampled token with its covariance and whether it is selected. */
function sampled(rows: Batch, given: PolicyLossSettings) {
  const tokens = rows.flat();
  const marks = selectedTokens(arrays(rows), given)!.flatMap(row => [...row]);
  expect(marks.length).toBe(tokens.length);
  tokens.forEach(({ on }, i) => expect(on || marks[i] === 0).toBe(true));
  const listed = tokens.map((of, i) => ({ ...of, selected: marks[i] === 1 })).filter(({ on }) => on);
  const mean = (pick: (of: Batch[0][0]) => number): number =>
    listed.reduce((sum, of) => sum + pick(of), 0) / Math.max(listed.length, 1);
  const [advantage, logprob] = [mean(of => of.advantage), mean(of => of.logprob)];
  return listed.map(of => ({ ...of, covariance: (of.advantage - advantage) * (of.logprob - logprob) }));
}

describe('KL-Cov', () => {
  it('selects the share of sampled tokens with the largest covariance, at least one', () => {
    fc.assert(
      fc.property(batch, fc.constantFrom(0.0002, 0.1, 0.5, 1), (rows, kl_cov_ratio) => {
        const all = sampled(rows, settings({ loss_mode: 'kl_cov', kl_cov_ratio }));
        const chosen = all.filter(({ selected }) => selected);
        const expected = Math.min(all.length, Math.max(1, Math.floor(kl_cov_ratio * all.length)));
        expect(chosen.length).toBe(expected);
        const least = Math.min(...chosen.map(({ covariance }) => covariance));
        for (const { covariance, selected } of all) if (!selected) expect(covariance).toBeLessThanOrEqual(least + 1e-9);
      }),
    );
  });
});

describe('Clip-Cov', () => {
  const bounds = { clip_cov_lb: 0.1, clip_cov_ub: 4 };

  it('selects as many candidates as the share allows, and the same ones for the same seed', () => {
    fc.assert(
      fc.property(batch, fc.constantFrom(0.0002, 0.1, 0.5), fc.nat(), (rows, clip_cov_ratio, seed) => {
        const given = settings({ loss_mode: 'clip_cov', clip_cov_ratio, ...bounds }, seed);
        const all = sampled(rows, given);
        const isCandidate = ({ covariance, logRatio, advantage }: (typeof all)[number]): boolean => {
          const ratio = Math.exp(logRatio);
          const clipped = Math.min(1.28, Math.max(0.8, ratio));
          return covariance > 0.1 && covariance < 4 && !(-advantage * clipped > -advantage * ratio);
        };
        const chosen = all.filter(({ selected }) => selected);
        const most = Math.max(1, Math.floor(clip_cov_ratio * all.length));
        expect(chosen.length).toBe(Math.min(most, all.filter(isCandidate).length));
        expect(chosen.every(isCandidate)).toBe(true);
        expect(selectedTokens(arrays(rows), given)).toEqual(selectedTokens(arrays(rows), given));
      }),
    );
  });

  it('reaches every candidate equally often', () => {
    // Six tokens have the covariance 1, six −1.
    const rows = Array.from({ length: 12 }, (_, i) => [
      { logprob: i % 4 < 2 ? -1 : -3, logRatio: 0, advantage: i % 2 ? 1 : -1, on: true },
    ]);
    const counts = rows.map(() => 0);
    for (let seed = 0; seed < 3000; seed++) {
      const given = settings({ loss_mode: 'clip_cov', clip_cov_ratio: 0.17, ...bounds }, seed);
      selectedTokens(arrays(rows), given)!.forEach(([mark], row) => (counts[row] += mark));
    }
    const chosen = counts.filter(count => count > 0);
    expect(chosen.length).toBe(6);
    for (const count of chosen) expect(Math.abs(count - 1000)).toBeLessThan(130);
  });
});

it('selects nothing in the other modes', () => {
  expect(selectedTokens(arrays([[{ logprob: -1, logRatio: 0, advantage: 1, on: true }]]), settings(undefined))).toBe(
    undefined,
  );
});
