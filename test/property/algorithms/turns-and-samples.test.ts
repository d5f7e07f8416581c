// Properties of the turn-, mask-, sequence- and sample-level algorithms: bi-level and two-mask GAE, turn-wise GRPO,
// GSPO and CISPO, dynamic sampling, and batch adjustment to a divisor.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adjustedSamples } from '../../../extension/algorithms/batch-adjustment';
import { biLevelAdvantages, nonZeroRewards } from '../../../extension/algorithms/bi-level-gae';
import { groupsToSample, overlongReward, filterGroups } from '../../../extension/algorithms/dapo';
import { generalizedAdvantages } from '../../../extension/algorithms/gae';
import { maskedGaeAdvantages } from '../../../extension/algorithms/masked-gae';
import type { SequenceLosses } from '../../../extension/algorithms/built-in-losses';
import type { SampledSequence } from '../../../extension/algorithms/covariance';
import { tokenLosses } from '../../../extension/algorithms/policy-loss';
import type { LossMode } from '../../../extension/algorithms/policy-loss-options';
import { spreadOverTurns, turnGrpoAdvantages } from '../../../extension/algorithms/turn-advantages';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';

const number = fc.integer({ min: -200, max: 200 }).map(hundredths => hundredths / 100);
const share = fc.constantFrom(0, 0.5, 0.9, 1);
const options = fc.record({ gamma: share, lam: share, high_level_gamma: share, high_level_lam: share });
const token = fc.record({ reward: number, value: number, sampled: fc.boolean(), estimated: fc.boolean() });
/** An episode that ends with a sampled token; a turn ends at the last of consecutive sampled tokens. */
const episode = fc.array(token, { minLength: 1, maxLength: 30 }).map(tokens => {
  const mask = Uint8Array.from(tokens, ({ sampled }, i) => (sampled || i === tokens.length - 1 ? 1 : 0));
  const turnEnds = Array.from(mask.keys()).filter(i => mask[i] && !mask[i + 1]);
  return {
    mask,
    turnEnds,
    rewards: Float32Array.from(tokens, ({ reward }, i) => (turnEnds.includes(i) ? reward : 0)),
    values: Float32Array.from(tokens, ({ value }) => value),
    advantageMask: Uint8Array.from(tokens, ({ estimated }, i) => (estimated && mask[i] ? 1 : 0)),
  };
});
const near = (actual: ArrayLike<number>, expected: ArrayLike<number>, digits = 4): void =>
  Array.from(expected).forEach((x, i) => expect(actual[i]).toBeCloseTo(x, digits));
const where = (values: Float32Array, mask: Uint8Array): Float32Array => values.map((x, i) => x * mask[i]);

describe('bi-level GAE', () => {
  it('equals GAE for a single turn, whatever γ and λ between turns are', () => {
    fc.assert(
      fc.property(episode, options, (sequence, given) => {
        const single = { ...sequence, turnEnds: [sequence.mask.length - 1] };
        near(biLevelAdvantages(single, given), where(generalizedAdvantages(sequence, given), sequence.mask));
      }),
    );
  });

  it('gives each turn’s end its return-to-go minus its value when all γ and λ are 1', () => {
    fc.assert(
      fc.property(episode, fc.constantFrom('start', 'end'), (sequence, turn_value) => {
        const found = biLevelAdvantages(sequence, { gamma: 1, lam: 1, high_level_gamma: 1, turn_value });
        let earned = 0;
        for (const end of sequence.turnEnds.toReversed()) {
          earned += sequence.rewards[end];
          expect(found[end]).toBeCloseTo(earned - sequence.values[end], 3);
        }
      }),
    );
  });

  it('is finite under RAGEN’s rule for turn ends, and equals the given turn ends when every turn has a reward', () => {
    fc.assert(
      fc.property(episode, options, (sequence, given) => {
        const guessed = { ...sequence, turnEnds: nonZeroRewards(sequence.rewards) };
        const found = biLevelAdvantages(guessed, given);
        expect(found.every(Number.isFinite)).toBe(true);
        if (guessed.turnEnds.length === sequence.turnEnds.length)
          expect(found).toEqual(biLevelAdvantages(sequence, given));
      }),
    );
  });
});

describe('GAE with two masks', () => {
  it('is 0 outside the loss mask and ignores values outside the advantage mask', () => {
    fc.assert(
      fc.property(fc.array(episode, { minLength: 1, maxLength: 4 }), options, number, (sequences, given, noise) => {
        const found = maskedGaeAdvantages(sequences, given);
        const noisy = sequences.map(s => ({ ...s, values: s.values.map((v, t) => (s.advantageMask[t] ? v : noise)) }));
        expect(maskedGaeAdvantages(noisy, given)).toEqual(found);
        sequences.forEach(({ mask, advantageMask }, row) => {
          expect(found.advantages[row]).toEqual(where(found.advantages[row], mask));
          expect(found.returns[row]).toEqual(where(found.returns[row], advantageMask));
        });
      }),
    );
  });
});

describe('turn-wise GRPO', () => {
  it('sums to 0 over all turns of a group of two or more episodes', () => {
    const turns = fc.array(number, { minLength: 1, maxLength: 5 });
    const batch = fc.array(fc.record({ turns, group: fc.nat(2) }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(batch, share, fc.boolean(), (episodes, high_level_gamma, norm_adv_by_std_in_grpo) => {
        const groups = episodes.map(({ group }) => group);
        const rewards = episodes.map(({ turns }) => turns);
        const found = turnGrpoAdvantages({ rewards, groups }, { high_level_gamma, norm_adv_by_std_in_grpo });
        for (const group of new Set(groups)) {
          const own = found.filter((_, i) => groups[i] === group).flatMap(row => Array.from(row));
          if (own.length > 1) expect(Math.abs(own.reduce((sum, a) => sum + a, 0))).toBeLessThan(1e-3);
        }
      }),
    );
  });

  it('covers every sampled token of an episode once', () => {
    fc.assert(
      fc.property(episode, ({ mask, turnEnds }) => {
        const spread = spreadOverTurns(
          turnEnds.map((_, turn) => turn + 1),
          turnEnds,
          mask,
        );
        mask.forEach((bit, t) => expect(spread[t]).toBe(bit ? turnEnds.findIndex(end => end >= t) + 1 : 0));
      }),
    );
  });
});

describe('losses', () => {
  const clip = { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 1e9 };
  const terms = { entropy_coeff: 0, use_kl_loss: false, kl_loss_coef: 0, kl_loss_type: 'kl' } as const;
  const lossesOf = (given: SampledSequence, loss_mode: LossMode): SequenceLosses =>
    tokenLosses([given], { ...clip, ...terms, loss_agg_mode: 'token-mean', policy_loss: { loss_mode } })[0];
  const sequence = fc.array(fc.record({ logprob: number, advantage: number, on: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  });
  const arrays = (tokens: { logprob: number; advantage: number; on: boolean }[], shift: number) => ({
    logprobs: Float32Array.from(tokens, ({ logprob }) => logprob),
    old_logprobs: Float32Array.from(tokens, ({ logprob }) => logprob - shift),
    advantages: Float32Array.from(tokens, ({ advantage }) => advantage),
    mask: Uint8Array.from(tokens, ({ on }, i) => (on || i === 0 ? 1 : 0)),
  });

  it('equal the clipped losses for GSPO when all tokens share one ratio and there is no dual clip', () => {
    fc.assert(
      fc.property(sequence, fc.constantFrom(-1.5, -0.1, 0, 0.1, 0.6), (tokens, shift) => {
        const given = arrays(tokens, shift);
        const [gspo, vanilla] = (['gspo', 'vanilla'] as const).map(mode => lossesOf(given, mode));
        near([...gspo.loss, ...gspo.slope], [...vanilla.loss, ...vanilla.slope]);
      }),
    );
  });

  it('keep every token’s gradient for CISPO', () => {
    fc.assert(
      fc.property(sequence, number, (tokens, shift) => {
        const given = arrays(tokens, 10 * shift);
        lossesOf(given, 'cispo').slope.forEach((slope, t) => {
          expect(Math.sign(slope)).toBe(-Math.sign(given.advantages[t]));
          const weight = Math.abs(slope) / Math.abs(given.advantages[t]);
          if (given.advantages[t] !== 0) expect(weight).toBeGreaterThanOrEqual(0.8 - 1e-6);
          if (given.advantages[t] !== 0) expect(weight).toBeLessThanOrEqual(1.28 + 1e-6);
        });
      }),
    );
  });
});

describe('dynamic sampling', () => {
  it('checks every group once and terminates', () => {
    const samples = fc.array(fc.record({ group: fc.nat(5), score: fc.nat(2) }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(samples, batch => {
        const { kept, dropped } = filterGroups({
          groups: batch.map(({ group }) => group),
          scores: batch.map(({ score }) => score / 10),
        });
        expect([...kept, ...dropped].toSorted()).toEqual([...new Set(batch.map(({ group }) => group))].toSorted());
        for (const group of dropped)
          expect(new Set(batch.filter(s => s.group === group).map(s => s.score)).size).toBe(1);
      }),
    );
    const progress = fc.record({
      wanted: fc.integer({ min: 1, max: 64 }),
      kept: fc.nat(80),
      sampled: fc.nat(500),
      rounds: fc.nat(9),
      max_num_gen_batches: fc.nat(9),
    });
    fc.assert(
      fc.property(progress, state => {
        const next = groupsToSample(state);
        expect(next).toBeLessThanOrEqual(state.wanted);
        if (state.kept >= state.wanted) expect(next).toBe(0);
        else if (state.max_num_gen_batches === 0 || state.rounds < state.max_num_gen_batches)
          expect(next).toBeGreaterThan(0);
      }),
    );
  });

  it('never penalizes a longer answer less', () => {
    fc.assert(
      fc.property(fc.nat(50), fc.nat(50), fc.nat(20), (length, limit, len) => {
        const [shorter, longer] = [length, length + 1].map(n => overlongReward(n, limit, { len, penalty_factor: 2 }));
        expect(longer).toBeLessThanOrEqual(shorter);
        expect(longer).toBeGreaterThanOrEqual(-2);
        expect(shorter).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('samples', () => {
  it('have a count divisible by the divisor after adjustment, with copy counts that differ by at most one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 90 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer(),
        (count, multiple, seed) => {
          for (const mode of ['copy', 'delete'] as const) {
            const indices = adjustedSamples(count, multiple, mode, new RandomStream(seed));
            expect(indices.length % multiple).toBe(0);
            expect(Math.abs(indices.length - count)).toBeLessThan(multiple);
            const copies = Array.from({ length: count }, (_, sample) => indices.filter(i => i === sample).length);
            expect(Math.max(...copies) - Math.min(...copies)).toBeLessThanOrEqual(1);
            if (mode === 'delete') expect(Math.max(...copies)).toBeLessThanOrEqual(1);
            else expect(Math.min(...copies)).toBeGreaterThan(0);
          }
        },
      ),
    );
  });
});
