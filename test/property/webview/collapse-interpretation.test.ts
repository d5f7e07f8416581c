// For any logged metrics, the collapse diagnosis is deterministic, contains only finite numbers, and links to existing
// targets.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Evidence } from '../../../webview/collapse/interpretation/evidence';
import { interpret } from '../../../webview/collapse/interpretation/interpretation';
import { judgedPath } from '../../../webview/collapse/trends/run-series';

const value = fc.oneof(
  { weight: 5, arbitrary: fc.double({ min: -3, max: 5, noNaN: true }) },
  fc.constantFrom(0, NaN, 1e-300, 1e9),
);
const estimate = fc.record({ value, low: value, high: value });
const finite = fc.double({ min: -3, max: 5, noNaN: true });
const point = fc.record({
  step: fc.nat(10_000),
  entropy: fc.record({ value: finite, low: value, high: value }),
  information: fc.record({ value: finite, low: value, high: value }),
  bound: fc.oneof(value, fc.constantFrom(0, Math.log(2), Math.log(16))),
  retrieval: estimate,
  chance: value,
  thoughts: value,
});
const points = fc.array(fc.record({ step: fc.nat(10_000), value: finite }), { maxLength: 40 });
const evidence: fc.Arbitrary<Evidence> = fc.record({
  path: fc.array(point, { maxLength: 20 }).map(judgedPath),
  filter: fc.constant(null),
  policy: fc.option(
    fc.record({
      kl_loss_coef: fc.constantFrom(0, 0.001),
      kl_coef: fc.constantFrom(0, 0.001),
      entropy_coeff: fc.constantFrom(0, 0.001),
      adv_estimator: fc.constantFrom('gae', 'grpo'),
      clip_ratio_high: fc.constantFrom(0.2, 0.28),
    }),
  ),
  changes: fc.array(
    fc.record({ key: fc.constant('actor_rollout_ref.actor.optim.lr'), from: finite, to: finite, step: fc.nat(10_000) }),
    { maxLength: 3 },
  ),
  checkpoints: fc.option(fc.array(fc.nat(10_000), { maxLength: 3 })),
  rewardStd: points,
  tokenEntropy: points,
  gradientNorm: points,
  invalidAnswers: points,
  success: points,
  validation: points,
  thinking: points,
});

it('the texts contain no NaN or Infinity', () => {
  fc.assert(
    fc.property(evidence, given => {
      const interpretation = interpret(given);
      const texts = [
        interpretation.headline,
        interpretation.sentence,
        interpretation.why,
        ...interpretation.signs.map(s => s.text),
        ...interpretation.advice.map(a => a.text),
      ];
      for (const text of texts) expect(text).not.toMatch(/NaN|Infinity|undefined|null|–/);
      expect(interpretation.advice.length).toBeGreaterThan(0);
      expect(interpretation.why).not.toBe('');
      expect(interpret(structuredClone(given))).toEqual(interpretation);
      if (given.path.length === 0) expect(interpretation.confidence).toBe('none');
    }),
    { numRuns: 200 },
  );
});
