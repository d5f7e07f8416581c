// Axes of parallel coordinates and the ranges marked on them.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyColumn } from '../../../../../webview/compare/sweep/key-importance';
import {
  draggedBrush,
  isWithin,
  keyAxis,
  numberAxis,
  runsWithin,
  steppedBrush,
} from '../../../../../webview/compare/sweep/parallel-axes';

const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 30 });

describe('an axis', () => {
  it('is logarithmic for positive numbers that span a factor of 20, else linear', () => {
    expect(numberAxis('lr', 'lr', [0.001, 0.01, 0.1], String).shares[1]).toBeCloseTo(0.5, 9);
    expect(numberAxis('lr', 'lr', [0, 1, 4], String).shares).toEqual([0, 0.25, 1]);
    expect(numberAxis('lr', 'lr', [2, 2], String).shares).toEqual([0.5, 0.5]);
  });

  it('labels few values, else the ends, and spaces names evenly', () => {
    expect(numberAxis('k', 'k', [1, 2, 4], String).ticks.map(({ label }) => label)).toEqual(['1', '2', '4']);
    expect(numberAxis('k', 'k', [1, 2, 3, 4, 5, 6, 7], String).ticks.map(({ label }) => label)).toEqual(['1', '7']);
    const names = keyAxis(keyColumn('k', ['c', 'a', 'b']), 'k');
    expect([names.shares, names.ticks.map(({ label }) => label)]).toEqual([
      [1, 0, 0.5],
      ['a', 'b', 'c'],
    ]);
  });

  it('keeps the order of numbers, within 0 and 1', () => {
    const numbers = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(numbers, values => {
        const axis = numberAxis('k', 'k', values, String);
        values.forEach((a, i) => {
          expect(axis.shares[i]).toBeGreaterThanOrEqual(0);
          expect(axis.shares[i]).toBeLessThanOrEqual(1);
          values.forEach((b, j) => a < b && expect(axis.shares[i]).toBeLessThanOrEqual(axis.shares[j]));
        });
      }),
    );
  });
});

describe('a range', () => {
  it('is marked by a drag in either direction; a click marks none', () => {
    expect(draggedBrush(0.8, 0.2)).toEqual({ low: 0.2, high: 0.8 });
    expect(draggedBrush(0.8, 1.7)).toEqual({ low: 0.8, high: 1 });
    expect(draggedBrush(0.5, 0.51)).toBeNull();
  });

  it('keeps the runs within the ranges of all axes', () => {
    const axes = [
      { key: 'a', title: 'a', shares: [0, 0.5, 1], ticks: [] },
      { key: 'b', title: 'b', shares: [1, 0.5, 0], ticks: [] },
    ];
    expect(runsWithin(axes, new Map())).toEqual([0, 1, 2]);
    expect(runsWithin(axes, new Map([['a', { low: 0.4, high: 1 }]]))).toEqual([1, 2]);
    expect(
      runsWithin(
        axes,
        new Map([
          ['a', { low: 0.4, high: 1 }],
          ['b', { low: 0.5, high: 1 }],
        ]),
      ),
    ).toEqual([1]);
  });

  it('moved by keys always contains a value, and reaches each value', () => {
    fc.assert(
      fc.property(shares, fc.array(fc.tuple(fc.constantFrom(1, -1), fc.boolean()), { maxLength: 8 }), (all, keys) => {
        let brush = steppedBrush(all, undefined, 1, false);
        for (const [direction, extend] of keys) {
          brush = steppedBrush(all, brush, direction, extend);
          expect(all.some(share => isWithin(brush, share))).toBe(true);
        }
        let up = steppedBrush(all, undefined, 1, false);
        const seen = new Set([up.low]);
        for (let i = 0; i < all.length; i++) seen.add((up = steppedBrush(all, up, 1, false)).low);
        expect(seen).toEqual(new Set(all));
      }),
    );
    expect(steppedBrush([0, 0.5, 1], { low: 0.5, high: 0.5 }, -1, true)).toEqual({ low: 0, high: 0.5 });
    expect(steppedBrush([0, 0.5, 1], undefined, -1, false)).toEqual({ low: 1, high: 1 });
  });
});
