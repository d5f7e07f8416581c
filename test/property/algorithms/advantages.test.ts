// Properties of the advantage estimators over random groups and episodes.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generalizedAdvantages, withReturns } from '../../../extension/algorithms/gae';
import type { GaeOptions, ValuedSequence } from '../../../extension/algorithms/gae';
import { grpoAdvantages } from '../../../extension/algorithms/grpo';
import { discountedReturns } from '../../../extension/algorithms/reinforce';
import { rlooAdvantages } from '../../../extension/algorithms/rloo';

const gaeAdvantages = (sequences: readonly ValuedSequence[], options: GaeOptions) =>
  withReturns(
    sequences,
    sequences.map(sequence => generalizedAdvantages(sequence, options)),
  );

const score = fc.integer({ min: -2000, max: 2000 }).map(tenths => tenths / 10);
const batch = fc
  .array(fc.record({ score, group: fc.integer({ min: 0, max: 4 }) }), { minLength: 1, maxLength: 40 })
  .map(samples => ({ scores: samples.map(({ score }) => score), groups: samples.map(({ group }) => group) }));
const sumsByGroup = (values: ArrayLike<number>, groups: number[]) => {
  const sums = new Map<number, { sum: number; count: number }>();
  groups.forEach((group, index) => {
    const entry = sums.get(group) ?? { sum: 0, count: 0 };
    sums.set(group, { sum: entry.sum + values[index], count: entry.count + 1 });
  });
  return [...sums.values()];
};

describe('group-relative advantages', () => {
  it('sum to 0 over a group of two or more episodes', () => {
    fc.assert(
      fc.property(batch, fc.boolean(), (samples, norm_adv_by_std_in_grpo) => {
        for (const advantages of [grpoAdvantages(samples, { norm_adv_by_std_in_grpo }), rlooAdvantages(samples)])
          for (const { sum, count } of sumsByGroup(advantages, samples.groups))
            if (count > 1) expect(Math.abs(sum)).toBeLessThan(1e-2);
      }),
    );
  });

  it('do not change when GRPO scores of a group are shifted and scaled', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(score, { minLength: 2, maxLength: 16 }),
        score,
        fc.integer({ min: 1, max: 20 }),
        (scores, shift, scale) => {
          const groups = scores.map(() => 0);
          const moved = scores.map(value => value * scale + shift);
          const plain = grpoAdvantages({ scores, groups }, { norm_adv_by_std_in_grpo: true });
          const other = grpoAdvantages({ scores: moved, groups }, { norm_adv_by_std_in_grpo: true });
          plain.forEach((advantage, index) => expect(other[index]).toBeCloseTo(advantage, 3));
        },
      ),
    );
  });

  it('keep the order of the scores with GRPO', () => {
    fc.assert(
      fc.property(fc.array(score, { minLength: 2, maxLength: 16 }), scores => {
        const advantages = grpoAdvantages({ scores, groups: scores.map(() => 0) }, { norm_adv_by_std_in_grpo: true });
        scores.forEach((a, i) =>
          scores.forEach((b, j) => a > b && expect(advantages[i]).toBeGreaterThan(advantages[j])),
        );
      }),
    );
  });
});

const episode = fc
  .array(fc.record({ reward: score, value: score, sampled: fc.boolean() }), { minLength: 1, maxLength: 40 })
  .map(tokens => ({
    rewards: Float32Array.from(tokens, ({ reward, sampled }) => (sampled ? reward : 0)),
    values: Float32Array.from(tokens, ({ value }) => value),
    mask: Uint8Array.from(tokens, ({ sampled }) => (sampled ? 1 : 0)),
  }));

describe('GAE', () => {
  it('equals the return minus the value when γ = λ = 1', () => {
    fc.assert(
      fc.property(episode, sequence => {
        const advantages = generalizedAdvantages(sequence, { gamma: 1, lam: 1 });
        const returns = discountedReturns(sequence, 1);
        sequence.mask.forEach(
          (bit, token) => bit && expect(advantages[token]).toBeCloseTo(returns[token] - sequence.values[token], 2),
        );
      }),
    );
  });

  it('does not depend on the inputs at tokens that were not sampled', () => {
    fc.assert(
      fc.property(episode, score, (sequence, noise) => {
        const other = { ...sequence, values: sequence.values.map((v, t) => (sequence.mask[t] ? v : noise)) };
        const options = { gamma: 0.9, lam: 0.8 };
        expect(generalizedAdvantages(other, options)).toEqual(generalizedAdvantages(sequence, options));
      }),
    );
  });

  it('has mean 0 over sampled tokens after whitening, and is 0 elsewhere', () => {
    fc.assert(
      fc.property(fc.array(episode, { minLength: 1, maxLength: 4 }), sequences => {
        const { advantages } = gaeAdvantages(sequences, { gamma: 1, lam: 0.95 });
        let sum = 0;
        sequences.forEach(({ mask }, row) =>
          mask.forEach((bit, token) => {
            if (bit) sum += advantages[row][token];
            else expect(advantages[row][token]).toBe(0);
          }),
        );
        expect(Math.abs(sum)).toBeLessThan(1e-2);
      }),
    );
  });
});
