// pass@k compared with the enumeration of all draws, and intervals compared with Wilson's published values and a
// simulation.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { meanOverGroups, passAtK, passSizes } from '../../../../extension/trainer/evaluation/success-statistics';

/** Share of all k-subsets of n episodes that contain a solved episode, if the first c episodes are solved. */
function counted(n: number, c: number, k: number): number {
  let all = 0;
  let passed = 0;
  for (let set = 0; set < 2 ** n; set++) {
    const members = Array.from({ length: n }, (_, i) => i).filter(i => set & (1 << i));
    if (members.length !== k) continue;
    all++;
    if (members.some(i => i < c)) passed++;
  }
  return passed / all;
}

describe('passAtK', () => {
  test('is the share of all draws of k episodes that contain a solved one', () => {
    for (let n = 1; n <= 8; n++)
      for (let c = 0; c <= n; c++)
        for (let k = 1; k <= n; k++) expect(passAtK(n, c, k), `${n} ${c} ${k}`).toBeCloseTo(counted(n, c, k), 12);
  });

  test('is the solved share for k = 1, and whether any was solved for k = n', () => {
    expect(passAtK(16, 3, 1)).toBeCloseTo(3 / 16, 12);
    expect([passAtK(16, 0, 16), passAtK(16, 1, 16)]).toEqual([0, 1]);
    expect(() => passAtK(4, 1, 5)).toThrow(RangeError);
  });

  test('has sizes up to the group size', () => {
    expect(passSizes(1)).toEqual([1]);
    expect(passSizes(6)).toEqual([1, 2, 4, 6]);
    expect(passSizes(16)).toEqual([1, 2, 4, 8, 16]);
  });
});

describe('meanOverGroups', () => {
  test('returns Wilson’s interval for one episode per group', () => {
    // 81 of 263 (Newcombe 1998, table I, method 3): 0.2553 to 0.3662; 0 of 20 (method 3): 0 to 0.1611.
    const groups = Array.from({ length: 263 }, (_, i) => Number(i < 81));
    const { mean, low, high } = meanOverGroups(groups, 263);
    expect(mean).toBeCloseTo(0.308, 4);
    expect([low, high]).toEqual([expect.closeTo(0.2553, 4), expect.closeTo(0.3662, 4)]);
    expect(meanOverGroups(new Array<number>(20).fill(0), 20)).toEqual({
      mean: 0,
      low: 0,
      high: expect.closeTo(0.1611, 4),
    });
  });

  test('counts equal episodes of a group as one, and all episodes of groups with equal rates', () => {
    const alike = [1, 0, 1, 0, 1, 0, 1, 0];
    expect(meanOverGroups(alike, 8 * 16)).toEqual(meanOverGroups(alike, 8));
    const mixed = new Array<number>(8).fill(0.5);
    const width = ({ low, high }: { low: number; high: number }): number => high - low;
    expect(width(meanOverGroups(mixed, 8 * 16))).toBeLessThan(width(meanOverGroups(alike, 8 * 16)) / 3);
    expect(width(meanOverGroups(mixed, 8 * 16))).toBeGreaterThan(0);
  });

  test('returns a mean inside the interval, which is inside [0, 1]', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1 }), groups => {
        const { mean, low, high } = meanOverGroups(groups, groups.length * 4);
        expect(low).toBeGreaterThanOrEqual(0);
        expect(low).toBeLessThanOrEqual(mean + 1e-12);
        expect(high).toBeGreaterThanOrEqual(mean - 1e-12);
        expect(high).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('covers the true mean of prompts of unequal difficulty in about 95 % of cases', () => {
    const stream = new RandomStream(5);
    const trials = 1000;
    let held = 0;
    for (let trial = 0; trial < trials; trial++) {
      // 40 prompts of uniformly distributed difficulty with 8 episodes each: the true mean is 0.5.
      const groups = Array.from({ length: 40 }, () => {
        const difficulty = stream.uniform();
        return Array.from({ length: 8 }, () => Number(stream.uniform() < difficulty)).reduce((a, b) => a + b) / 8;
      });
      const { low, high } = meanOverGroups(groups, 320);
      held += Number(low <= 0.5 && 0.5 <= high);
    }
    expect(held / trials).toBeGreaterThan(0.925);
    expect(held / trials).toBeLessThan(0.975);
  });
});
