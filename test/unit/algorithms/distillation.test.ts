// Advantages of on-policy distillation against tinker-cookbook's own function (test/golden/make/distillation.py), and
// their properties.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distillationAdvantages } from '../../../extension/algorithms/distillation';
import { root } from '../../support/workspace';

interface Golden {
  policy: number[][];
  teacher: number[][];
  mask: number[][];
  cases: { kl_penalty_coef: number; kl_discount_factor: number; kl: number; advantages: number[][] }[];
}
const golden = JSON.parse(readFileSync(join(root, 'test/golden/distillation.json'), 'utf8')) as Golden;
const sequences = golden.policy.map((policy, i) => ({
  policy,
  teacher: golden.teacher[i],
  mask: Uint8Array.from(golden.mask[i]),
}));

it.each(golden.cases)(
  'equals tinker-cookbook with coefficient $kl_penalty_coef and discount $kl_discount_factor',
  ({ advantages, kl, ...options }) => {
    const found = distillationAdvantages(sequences, options);
    expect(found.kl).toBeCloseTo(kl, 5);
    found.advantages.forEach((row, i) => row.forEach((x, t) => expect(x).toBeCloseTo(advantages[i][t], 5)));
  },
);

describe('for any log-probs', () => {
  const logprob = fc.double({ min: -20, max: 0, noNaN: true });
  const sequence = fc.array(fc.tuple(logprob, logprob, fc.boolean()), { maxLength: 20 }).map(tokens => ({
    policy: tokens.map(([own]) => own),
    teacher: tokens.map(([, other]) => other),
    mask: Uint8Array.from(tokens, ([, , isTrained]) => Number(isTrained)),
  }));
  const options = fc.record({
    kl_penalty_coef: fc.double({ min: 0.01, max: 10, noNaN: true }),
    kl_discount_factor: fc.double({ min: 0, max: 1, noNaN: true }),
  });

  it('a policy that equals its teacher has no advantages', () =>
    fc.assert(
      fc.property(fc.array(sequence), options, (rows, settings) => {
        const { advantages, kl } = distillationAdvantages(
          rows.map(row => ({ ...row, teacher: row.policy })),
          settings,
        );
        expect(kl).toBe(0);
        expect(advantages.every(row => row.every(x => Math.abs(x) === 0))).toBe(true);
      }),
    ));

  it('tokens that are not trained have no advantage and no influence', () =>
    fc.assert(
      fc.property(fc.array(sequence), options, (rows, settings) => {
        const silent = rows.map(row => ({ ...row, teacher: row.teacher.map((x, t) => (row.mask[t] === 1 ? x : -7)) }));
        const found = distillationAdvantages(rows, settings);
        expect(found).toEqual(distillationAdvantages(silent, settings));
        found.advantages.forEach((row, i) => row.forEach((x, t) => rows[i].mask[t] === 0 && expect(x).toBe(0)));
      }),
    ));

  it('without a discount, a token the teacher finds likelier has a positive advantage, and vice versa', () =>
    fc.assert(
      fc.property(sequence, row => {
        const [found] = distillationAdvantages([row], { kl_penalty_coef: 1, kl_discount_factor: 0 }).advantages;
        found.forEach((x, t) => {
          // Adding 0 turns −0 into 0, which the advantage of a difference that rounds to −0 may be.
          if (row.mask[t] === 1) expect(x + 0).toBe(Math.fround(row.teacher[t] - row.policy[t]) + 0);
        });
      }),
    ));
});
