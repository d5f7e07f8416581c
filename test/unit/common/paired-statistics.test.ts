// Paired differences, bootstrap intervals and clustered correlations against SciPy, and their properties.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bootstrapInterval,
  clusteredCorrelation,
  meanOf,
  pairedDifference,
  type Cluster,
  type Interval,
} from '../../../extension/common/paired-statistics';
import { rankCorrelation, resampledCorrelation } from '../../../extension/common/rank-correlation';

interface GoldenPair {
  a: number[];
  b: number[];
  mean: number;
  effectSize: number;
  student: Interval;
  bootstrap: Interval;
}
// Written by test/golden/make/paired_statistics.py.
const golden = JSON.parse(readFileSync('test/golden/paired-statistics.json', 'utf8')) as {
  paired: GoldenPair[];
  clustered: { clusters: Cluster[]; rho: number; interval: Interval };
};

/** Expects an interval whose ends differ from the expected ones by at most `share` of its width. */
function expectInterval(actual: Interval | null, expected: Interval, share: number): void {
  const width = expected.high - expected.low;
  expect(Math.abs(actual!.low - expected.low)).toBeLessThan(share * width);
  expect(Math.abs(actual!.high - expected.high)).toBeLessThan(share * width);
}

describe.each(golden.paired)('a paired difference of $a.length values', ({ a, b, ...expected }) => {
  const found = pairedDifference(a, b, { seed: 3, resamples: 40_000 })!;

  test('has SciPy’s mean, effect size and Student’s t interval', () => {
    expect(found.n).toBe(a.length);
    expect(found.mean).toBeCloseTo(expected.mean, 12);
    expect(found.effectSize).toBeCloseTo(expected.effectSize, 10);
    // The quantiles of Student's t have three decimals, and the normal quantile stands for more than 31 values.
    expectInterval(found.student, expected.student, a.length > 31 ? 0.02 : 1e-3);
  });

  test('has SciPy’s bootstrap interval, up to the randomness of the resamples', () =>
    expectInterval(found.bootstrap, expected.bootstrap, 0.02));
});

test('a correlation of clustered observations has SciPy’s value, and an interval over clusters', () => {
  const { clusters, rho, interval } = golden.clustered;
  const found = clusteredCorrelation(clusters, { seed: 5, resamples: 4000 });
  expect(found.n).toBe(96);
  expect(found.rho).toBeCloseTo(rho, 12);
  expectInterval(found.interval, interval, 0.05);
});

test('a correlation over drawn clusters is that of all their observations', () => {
  const rounded = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 })), { maxLength: 8 });
  fc.assert(
    fc.property(
      fc.array(rounded, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (pairs, picks) => {
        const clusters = pairs.map(list => ({ x: list.map(([x]) => x), y: list.map(([, y]) => y) }));
        const drawn = picks.map(pick => pick % clusters.length);
        const all = drawn.map(cluster => clusters[cluster]);
        const [x, y] = [all.flatMap(each => each.x), all.flatMap(each => each.y)];
        expect(resampledCorrelation(clusters)(drawn)).toBe(rankCorrelation(x, y));
      },
    ),
  );
});

test('there is no interval below three pairs, and no effect size without spread', () => {
  const seeded = { seed: 1 };
  expect(pairedDifference([], [], seeded)).toBeNull();
  expect(pairedDifference([0.5], [0.75], seeded)).toEqual({
    ...{ n: 1, mean: 0.25, effectSize: null, student: null, bootstrap: null },
  });
  const two = pairedDifference([0.5, 0.5], [0.75, 1], seeded)!;
  expect(two).toMatchObject({ n: 2, mean: 0.375, student: null, bootstrap: null });
  expect(two.effectSize).toBeCloseTo(0.375 / (0.25 / Math.SQRT2), 12);
  const equal = pairedDifference([0.1, 0.2, 0.3], [0.2, 0.3, 0.4], seeded)!;
  expect(equal.effectSize).toBeNull();
  expect(equal.bootstrap!.low).toBeCloseTo(0.1, 12);
  expect(() => pairedDifference([1], [], seeded)).toThrow(
    'paired values: the lists have 1 and 0 values, which must be equal',
  );
});

const values = fc.array(fc.double({ min: -1e3, max: 1e3, noNaN: true }), { minLength: 3, maxLength: 12 });

test('swapping the arms changes only the sign', () =>
  fc.assert(
    fc.property(values, values, (x, y) => {
      const n = Math.min(x.length, y.length);
      const seeded = { seed: 9, resamples: 50 };
      const [there, back] = [
        pairedDifference(x.slice(0, n), y.slice(0, n), seeded)!,
        pairedDifference(y.slice(0, n), x.slice(0, n), seeded)!,
      ];
      expect(back.mean).toBeCloseTo(-there.mean, 8);
      expect(back.student!.low).toBeCloseTo(-there.student!.high, 6);
      expect(back.bootstrap!.low).toBeCloseTo(-there.bootstrap!.high, 6);
    }),
  ));

test('a bootstrap interval repeats with its seed, stays within the values, and widens with its level', () =>
  fc.assert(
    fc.property(values, fc.integer(), (list, seed) => {
      const at = (level: number) => bootstrapInterval(list, meanOf, { seed, resamples: 60, level })!;
      expect(at(0.9)).toEqual(at(0.9));
      const [narrow, wide] = [at(0.5), at(0.95)];
      expect(wide.low).toBeLessThanOrEqual(narrow.low);
      expect(wide.high).toBeGreaterThanOrEqual(narrow.high);
      expect(wide.low).toBeGreaterThanOrEqual(Math.min(...list) - 1e-9);
      expect(wide.high).toBeLessThanOrEqual(Math.max(...list) + 1e-9);
    }),
  ));
