// Learning-rate schedules: their end points, and that each stays within [0, lr].
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { learningRate } from '../../../extension/algorithms/learning-rate';

const schedule = (lr_scheduler_type: 'constant' | 'linear' | 'cosine', lr_warmup_steps = 0) => ({
  lr: 1e-3,
  lr_warmup_steps,
  lr_scheduler_type,
  total_training_steps: 10,
});

it('stays constant, falls linearly, or falls as a cosine', () => {
  expect([1, 5, 10].map(step => learningRate(step, schedule('constant')))).toEqual([1e-3, 1e-3, 1e-3]);
  expect(learningRate(1, schedule('linear'))).toBe(1e-3);
  expect(learningRate(6, schedule('linear'))).toBeCloseTo(5e-4, 12);
  expect(learningRate(6, schedule('cosine'))).toBeCloseTo(5e-4, 12);
  expect(learningRate(11, schedule('cosine'))).toBeCloseTo(0, 12);
});

it('warms up in equal steps', () => {
  expect([1, 2, 3].map(step => learningRate(step, schedule('constant', 2)))).toEqual([1e-3 / 3, 2e-3 / 3, 1e-3]);
});

it('never leaves [0, lr] and never rises after the warm-up', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('constant' as const, 'linear' as const, 'cosine' as const),
      fc.integer({ min: -1, max: 20 }),
      fc.integer({ min: 1, max: 50 }),
      (type, warmup, total) => {
        const rates = Array.from({ length: 60 }, (_, i) =>
          learningRate(i + 1, { lr: 1, lr_warmup_steps: warmup, lr_scheduler_type: type, total_training_steps: total }),
        );
        for (const rate of rates) {
          expect(rate).toBeGreaterThanOrEqual(0);
          expect(rate).toBeLessThanOrEqual(1);
        }
        const after = rates.slice(Math.max(warmup, 0));
        after.forEach((rate, i) => i > 0 && expect(rate).toBeLessThanOrEqual(after[i - 1]));
      },
    ),
  );
});
