// The reductions of a run's series to one number.
import { expect, test } from 'vitest';
import { measureSchema } from '../../../../extension/run-data/claims/claim-schema';
import { measureRun } from '../../../../extension/run-data/claims/run-measure';

const steps = [0.2, 0.4, 0.8, 0.6, 0.3, 0.1].map((success, i) => ({
  step: 2 * i,
  success,
  std: [0.5, 0.5, 0.2, 0.1, 0.1, 0.1][i],
  ...(i > 0 && { task: 4 * i, all: 2 * i }),
}));
const measured = (measure: object): number | null =>
  measureRun({ arm: 'a', seed: 1, steps }, measureSchema.parse({ metric: 'success', window: 1, ...measure }));

test.each([
  [{ take: 'first' }, 0.2],
  [{ take: 'last' }, 0.1],
  [{ take: 'best' }, 0.8],
  [{ take: 'best', window: 2 }, 0.7],
  [{ take: 'worst', window: 2 }, 0.2],
  [{ take: 'mean' }, 0.4],
  [{ take: 'mean', from: 6 }, 1 / 3],
  [{ take: 'change' }, -0.1],
  [{ take: 'gain' }, 0.6],
  [{ take: 'kept' }, 0.125],
  [{ take: 'until' }, 8],
  [{ take: 'until', share: 0.1 }, 10],
  [{ metric: 'std', take: 'lead', before: 'success' }, 4],
  [{ metric: 'task', over: 'all', take: 'mean' }, 2],
  [{ metric: 'task', take: 'first' }, 4],
])('%j: %d', (measure, value) => expect(measured(measure)).toBeCloseTo(value, 12));

test('a series that is too short, or a fall that never comes, has no value', () => {
  expect(measured({ window: 7 })).toBeNull();
  expect(measured({ metric: 'missing' })).toBeNull();
  expect(measured({ take: 'lead', before: 'task' })).toBeNull();
});

test('lead needs the metric that falls later', () => {
  expect(() => measureSchema.parse({ metric: 'success', take: 'lead' })).toThrow('before');
  expect(() => measureSchema.parse({ metric: 'success', before: 'std' })).toThrow('before');
});
