// The gradient of the policy loss against finite differences in double precision. Terms that a loss mode holds constant
// (the sequence ratios of GSPO and GMPO, CISPO's weight, the selection of Clip-Cov and KL-Cov) keep the value that they have at the current log-probs.
import { describe, expect, it } from 'vitest';
import { cispoTokenLoss } from '../../../extension/algorithms/cispo';
import { tokenPolicyLoss } from '../../../extension/algorithms/clipped-surrogate';
import { clippedLogRatio, clippedSequenceLogRatio, gmpoTokenLoss } from '../../../extension/algorithms/gmpo';
import { gspoTokenLoss, sequenceLogRatio } from '../../../extension/algorithms/gspo';
import { tokenKl, tokenKlSlope } from '../../../extension/algorithms/kl';
import { aggregationWeights } from '../../../extension/algorithms/loss-aggregation';
import { clipCovTokenLoss, klCovTokenLoss, selectedTokens } from '../../../extension/algorithms/covariance';
import { policyLossGradient, type PolicySequence } from '../../../extension/algorithms/policy-loss';
import {
  klKinds,
  lossAggModes,
  lossModes,
  type LossMode,
  type PolicyLossSettings,
} from '../../../extension/algorithms/policy-loss-options';
import { sapoTokenLoss } from '../../../extension/algorithms/sapo';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';

const clip = { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3 };
const covariance = { clip_cov_ratio: 0.1, clip_cov_lb: 0.05, clip_cov_ub: 4, kl_cov_ratio: 0.15, ppo_kl_coef: 0.5 };
const step = 1e-5;

/** Sequences of different lengths, one of them without a sampled token. */
const batch: (PolicySequence & { ref_logprobs: ArrayLike<number> })[] = [8, 5, 11, 6].map((length, row) => {
  const stream = new RandomStream(row);
  const row64 = (draw: () => number): Float64Array => Float64Array.from({ length }, draw);
  const logprobs = row64(() => -3 * stream.uniform());
  return {
    logprobs,
    old_logprobs: logprobs.map(logprob => logprob - 0.7 * stream.normal()),
    ref_logprobs: logprobs.map(logprob => logprob - 0.7 * stream.normal()),
    advantages: row64(() => stream.normal()),
    mask: Uint8Array.from({ length }, () => (row !== 1 && stream.uniform() < 0.8 ? 1 : 0)),
  };
});

/** The surrogate loss of one token whose log-prob is `logprob` instead of the sequence's own. */
function surrogate(
  mode: LossMode,
  sequence: PolicySequence,
  token: number,
  logprob: number,
  isSelected: boolean,
): number {
  const { logprobs, old_logprobs, advantages, mask } = sequence;
  const [now, old, advantage] = [logprobs[token], old_logprobs[token], advantages[token]];
  switch (mode) {
    case 'vanilla':
      return tokenPolicyLoss(logprob - old, advantage, clip).loss;
    case 'gspo':
      return gspoTokenLoss(sequenceLogRatio(logprobs, old_logprobs, mask) + logprob - now, advantage, clip).loss;
    case 'cispo':
      return cispoTokenLoss(logprob, now - old, advantage, clip).loss;
    case 'sapo':
      return sapoTokenLoss(logprob - old, advantage, { tau_pos: 1, tau_neg: 1.05 }).loss;
    case 'geo_mean': {
      const ratios = Array.from(logprobs, (each, t) => each - old_logprobs[t]);
      const held = (each: number): number => clippedLogRatio(each - old, advantage, clip);
      const ofSequence = clippedSequenceLogRatio(ratios, advantages, mask, clip) + held(logprob) - held(now);
      return gmpoTokenLoss(logprob - old, ofSequence, advantage, clip).loss;
    }
    case 'clip_cov':
      return clipCovTokenLoss(logprob - old, advantage, isSelected, clip).loss;
    case 'kl_cov':
      return klCovTokenLoss(logprob - old, advantage, isSelected, covariance.ppo_kl_coef).loss;
  }
}

describe.each(lossModes)('%s', loss_mode => {
  it.each(lossAggModes)('aggregated by %s has the slope of its loss', loss_agg_mode => {
    for (const kl_loss_type of klKinds) {
      const settings: PolicyLossSettings = {
        ...clip,
        policy_loss: { loss_mode, ...covariance },
        loss_agg_mode,
        entropy_coeff: 0,
        use_kl_loss: true,
        kl_loss_coef: 0.3,
        kl_loss_type,
      };
      const lengths = batch.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
      const weights = aggregationWeights(lengths, loss_agg_mode, 11);
      const selected = selectedTokens(batch, settings);
      policyLossGradient(batch, settings).forEach((slopes, row) =>
        slopes.forEach((slope, token) => {
          const sequence = batch[row];
          const loss = (shift: number): number => {
            const logprob = sequence.logprobs[token] + shift;
            const kl = tokenKl(kl_loss_type, logprob - sequence.ref_logprobs[token]);
            const isSelected = selected?.[row][token] === 1;
            return (
              weights[row] * (surrogate(loss_mode, sequence, token, logprob, isSelected) + settings.kl_loss_coef * kl)
            );
          };
          const expected = sequence.mask[token] ? (loss(step) - loss(-step)) / (2 * step) : 0;
          expect(Math.abs(slope - expected), `${kl_loss_type}, row ${row}, token ${token}`).toBeLessThan(1e-8);
        }),
      );
    }
  });
});

it('is zero where an estimate of the KL divergence is clamped', () => {
  for (const difference of [-25, -14, 25]) expect(tokenKlSlope('k3', difference)).toBe(0);
  expect(tokenKlSlope('k3', 1)).toBeCloseTo(1 - Math.exp(-1), 12);
});

it('needs the log-probs of the reference policy for the KL loss', () => {
  const bare = batch.map(({ ref_logprobs: _, ...sequence }) => sequence);
  const settings: PolicyLossSettings = {
    ...clip,
    entropy_coeff: 0,
    use_kl_loss: true,
    kl_loss_coef: 1,
    kl_loss_type: 'k1',
    loss_agg_mode: 'token-mean',
  };
  expect(() => policyLossGradient(bare, settings)).toThrow('no ref_logprobs');
});
