// Successive halving: rungs, decisions, seeds that are missing, and the independence of decisions from timing.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { halve, rungsBelow, type HalvedRun } from '../../../../extension/cli/sweep/halving';
import type { Halving } from '../../../../extension/run-data/sweep-file';

const rule: Halving = { rungs: [2, 4], factor: 2, least_points: 1, metric: null, goal: 'max' };

/** A run that has finished `steps` steps; its value is constant, or depends on the step. */
const run = (
  seed: number,
  value: number | ((step: number) => number | null),
  steps = 8,
  isOver = false,
): HalvedRun => ({
  ...{ seed, steps, isOver },
  valueAt: step => (typeof value === 'number' ? value : value(step)),
});

test('rungs are multiples below the end', () => {
  expect(rungsBelow(100, 10, 2)).toEqual([10, 20, 40, 80]);
  expect(rungsBelow(10, 10, 2)).toEqual([]);
  expect(rungsBelow(20, 3, 1.5)).toEqual([3, 5, 7, 10, 15]);
});

describe('halving', () => {
  test('waits at the first rung that a run has not reached', () => {
    const points = [[run(1, 0.5, 2)], [run(1, 0.1, 1)]];
    expect(halve(points, rule)).toEqual({ target: 2, stopped: new Map() });
  });

  test('keeps the best half at each rung', () => {
    const points = [0.1, 0.4, 0.3, 0.2].map(value => [run(1, value)]);
    const { target, stopped } = halve(points, rule);
    expect(target).toBe(Infinity);
    expect([...stopped]).toEqual([
      [3, { step: 2, value: 0.2, rank: 3, of: 4 }],
      [0, { step: 2, value: 0.1, rank: 4, of: 4 }],
      [2, { step: 4, value: 0.3, rank: 2, of: 2 }],
    ]);
  });

  test('ranks by the value at the rung, not by a later one', () => {
    const points = [[run(1, step => (step <= 2 ? 0.9 : 0))], [run(1, step => (step <= 2 ? 0.1 : 1))]];
    expect([...halve(points, { ...rule, rungs: [2] }).stopped.keys()]).toEqual([1]);
  });

  test('can prefer low values, and never stops the last points', () => {
    const points = [0.1, 0.4, 0.3].map(value => [run(1, value)]);
    expect([...halve(points, { ...rule, goal: 'min', least_points: 2 }).stopped.keys()]).toEqual([1]);
  });

  test('compares the seeds that all points have, and does not wait for a run that has failed', () => {
    const failed = run(2, () => null, 1, true);
    // Without seed 2, the first point is better; its seed 2 would make it worse.
    const points = [
      [run(1, 0.6), run(2, 0)],
      [run(1, 0.5), failed],
    ];
    expect([...halve(points, rule).stopped]).toEqual([[1, { step: 2, value: 0.5, rank: 2, of: 2 }]]);
  });

  test('ranks a point without any value last, and decides nothing without values', () => {
    const nothing = [run(1, () => null, 0, true)];
    expect([...halve([nothing, [run(1, 0)]], rule).stopped]).toEqual([[0, { step: 2, value: null, rank: 2, of: 2 }]]);
    expect(halve([nothing, nothing], rule)).toEqual({ target: Infinity, stopped: new Map() });
  });

  test('keeps its decisions while the remaining runs train on', () => {
    const values = fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 8, maxLength: 8 }), {
      minLength: 2,
      maxLength: 9,
    });
    fc.assert(
      fc.property(
        values,
        fc.array(fc.integer({ min: 2, max: 8 }), { minLength: 9, maxLength: 9 }),
        (table, progress) => {
          const at = (steps: (p: number) => number) =>
            halve(
              table.map((row, p) => [run(1, step => row[step - 1], steps(p))]),
              rule,
            );
          const now = at(p => progress[p]);
          const end = at(() => 8);
          for (const [p, stop] of now.stopped) expect(end.stopped.get(p)).toEqual(stop);
          expect(end.stopped.size).toBeLessThan(table.length);
        },
      ),
    );
  });
});
