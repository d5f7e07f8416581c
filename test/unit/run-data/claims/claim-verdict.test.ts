// Verdicts of claims on small invented runs whose statistics are known: differences, levels, trends, correlations, and
// the combination of tests.
import { describe, expect, test } from 'vitest';
import { claimSchema, type ClaimTest } from '../../../../extension/run-data/claims/claim-schema';
import { claimVerdict, judgeClaim, judgeTest } from '../../../../extension/run-data/claims/claim-verdict';
import type { MeasuredRun } from '../../../../extension/run-data/claims/run-measure';

const run = (arm: string, seed: number, values: readonly number[], key = 'success'): MeasuredRun => ({
  arm,
  seed,
  steps: values.map((value, i) => ({ step: i + 1, [key]: value })),
});
const constant = (arm: string, finals: readonly number[]): MeasuredRun[] =>
  finals.map((value, seed) => run(arm, seed, [value, value, value]));
const parsed = (test: object): ClaimTest =>
  claimSchema.parse({ number: 1, title: 't', paper: 'p', tests: [{ name: 'n', ...test }] }).tests[0];
const verdictOf = (test: object, runs: readonly MeasuredRun[]): string => judgeTest(parsed(test), runs).verdict;

describe('difference', () => {
  const between = { test: 'difference', arm: 'a', against: 'b', measure: { metric: 'success' } };
  const low = constant('b', [0.1, 0.3, 0.2, 0.4, 0.2]);
  const high = constant('a', [0.4, 0.5, 0.5, 0.7, 0.4]);

  test('pairs by seed, with both intervals and the effect size', () => {
    const { statistic, values, verdict } = judgeTest(parsed({ ...between, expect: 'higher' }), [
      ...low,
      ...high.toReversed(),
    ]);
    expect(verdict).toBe('reproduced');
    expect(values.map(({ value }) => Number(value.toFixed(12)))).toEqual([0.2, 0.3, 0.3, 0.2, 0.3]);
    // scipy.stats.ttest_rel([.4,.5,.5,.7,.4], [.1,.3,.2,.4,.2]).confidence_interval(): 0.19199 … 0.32801
    expect(statistic!.value).toBeCloseTo(0.26, 12);
    expect(statistic!.student!.low).toBeCloseTo(0.192, 3);
    expect(statistic!.student!.high).toBeCloseTo(0.328, 3);
    expect(statistic!.bootstrap!.low).toBeGreaterThanOrEqual(0.2);
    expect(statistic!.effectSize).toBeCloseTo(0.26 / 0.0547723, 3);
  });

  test.each([
    ['higher', {}, 'reproduced'],
    ['lower', {}, 'opposite'],
    ['higher', { least: 0.3 }, 'not reproduced'],
    ['equal', { least: 0.1 }, 'opposite'],
    ['equal', { least: 0.5 }, 'reproduced'],
    ['equal', { least: 0.3 }, 'not reproduced'],
  ])('%s %j: %s', (expectation, more, verdict) =>
    expect(verdictOf({ ...between, ...more, expect: expectation }, [...low, ...high])).toBe(verdict),
  );

  test('needs three pairs; a seed of one arm only is not used', () => {
    expect(verdictOf({ ...between, expect: 'higher' }, [...low, ...high.slice(0, 2)])).toBe('too few runs');
  });

  test('is not decided by differences of both signs', () => {
    const mixed = constant('a', [0.4, 0.1, 0.5, 0.2, 0.3]);
    expect(verdictOf({ ...between, expect: 'higher' }, [...low, ...mixed])).toBe('not reproduced');
  });
});

test.each([
  [{ below: 0.5 }, 'reproduced'],
  [{ above: 0.5 }, 'opposite'],
  [{ below: 0.25 }, 'not reproduced'],
  [{ above: 0, below: 0.5 }, 'reproduced'],
])('level %j: %s', (bounds, verdict) =>
  expect(
    verdictOf(
      { test: 'level', arm: 'b', measure: { metric: 'success' }, ...bounds },
      constant('b', [0.1, 0.3, 0.2, 0.4]),
    ),
  ).toBe(verdict),
);

describe('trend', () => {
  const of = (rows: readonly (readonly number[])[]): MeasuredRun[] =>
    rows.flatMap((row, seed) => row.map((value, i) => run(['x', 'y', 'z', 'w'][i], seed, [value, value, value])));
  const rising = { test: 'trend', arms: ['x', 'y', 'z', 'w'], measure: { metric: 'success' }, expect: 'rises' };

  test('correlates the measure with the order of the arms, within each seed', () => {
    const { values, verdict } = judgeTest(parsed(rising), of([[1, 2, 3, 4], [1, 3, 2, 4], [2, 1, 3, 4], [1, 2, 4, 3]])); // prettier-ignore
    // scipy.stats.spearmanr([0,1,2,3], [1,3,2,4]).statistic == 0.8
    expect(values.map(({ value }) => Number(value.toFixed(12)))).toEqual([1, 0.8, 0.8, 0.8]);
    expect(verdict).toBe('reproduced');
  });

  test('skips a seed without a value in one arm', () => {
    expect(
      verdictOf(
        rising,
        of([
          [1, 2, 3, 4],
          [1, 2, 3, 4],
          [1, 2, 3],
        ]),
      ),
    ).toBe('too few runs');
  });

  test('compares metrics of one run', () => {
    const runs = [1, 2, 3].map(seed => ({ arm: 'a', seed, steps: [{ step: 1, g1: 5, g2: 4, g3: seed / 10 }] }));
    const metrics = {
      test: 'trend',
      metrics: ['g1', 'g2', 'g3'],
      measure: { metric: 'g1', window: 1 },
      expect: 'rises',
    };
    expect(verdictOf(metrics, runs)).toBe('opposite');
  });
});

describe('correlation', () => {
  const runs = (y: (i: number, seed: number) => number): MeasuredRun[] =>
    [0, 1, 2, 3, 4].map(seed => ({
      arm: 'a',
      seed,
      steps: Array.from({ length: 8 }, (_, i) => ({ step: i, success: i, mi: i + seed / 10, h: y(i, seed) })),
    }));
  const mi = { test: 'correlation', x: 'mi', against: 'h', expect: 'positive' };

  test('is reproduced if the metric is the better predictor', () => {
    const { statistic, others, verdict } = judgeTest(parsed(mi), runs((i, seed) => (i * 3 + seed * 5) % 8)); // prettier-ignore
    expect(verdict).toBe('reproduced');
    expect(statistic!.n).toBe(40);
    expect(others['mi by run'].value).toBe(1);
    expect(others['advantage of mi'].value).toBeGreaterThan(0.3);
  });

  test('is the opposite if the other metric is the better predictor, with either sign', () => {
    const worse = runs(i => -i).map(({ steps, ...rest }) => ({
      ...rest,
      steps: steps.map((metrics, i) => ({ ...metrics, mi: i < 4 ? 7 - i : i })),
    }));
    expect(judgeTest(parsed(mi), worse).others['h by run'].value).toBe(-1);
    expect(verdictOf(mi, worse)).not.toBe('reproduced');
    expect(
      verdictOf(
        { ...mi, against: undefined },
        runs(i => i),
      ),
    ).toBe('reproduced');
  });
});

test.each([
  [[], ['reproduced', 'reproduced'], 'reproduced'],
  [[], ['reproduced', 'not reproduced'], 'not reproduced'],
  [[], ['reproduced', 'opposite'], 'opposite'],
  [['not reproduced'], ['reproduced', 'opposite'], 'no experiment'],
  [['reproduced'], ['too few runs', 'opposite'], 'too few runs'],
] as const)('conditions %j and tests %j give %s', (conditions, tests, verdict) => {
  const of = (required: boolean) => (each: (typeof tests)[number]) => ({ required, verdict: each });
  expect(claimVerdict([...conditions.map(of(true)), ...tests.map(of(false))])).toBe(verdict);
});

test('a claim is judged as a whole', () => {
  const claim = claimSchema.parse({
    ...{ number: 3, title: 'The filter helps', paper: '+16 points' },
    tests: [
      { test: 'difference', name: 'higher', arm: 'a', against: 'b', measure: { metric: 'success' }, expect: 'higher' },
    ],
  });
  const result = judgeClaim(claim, [...constant('a', [0.6, 0.7, 0.65]), ...constant('b', [0.2, 0.3, 0.24])]);
  expect(result).toMatchObject({ number: 3, verdict: 'reproduced', tests: [{ verdict: 'reproduced' }] });
});
