// Means and intervals over seeds, and the comparison as a table and as CSV.
import { describe, expect, test } from 'vitest';
import { estimate } from '../../../../extension/common/mean-estimate';
import { pairedDifference } from '../../../../extension/common/paired-statistics';
import { comparisonCsv, comparisonTable, incomplete, outcomeOf } from '../../../../extension/cli/sweep/comparison';
import { UserError } from '../../../../extension/common/user-error';
import type { RunFolder } from '../../../../extension/trainer/store/run-folder';
import type { Comparison, Outcome } from '../../../../extension/cli/sweep/comparison';
import { partial } from '../../../support/partial';

const run = (
  seed: number,
  final: number | null,
  best: number | null,
  state: Outcome['state'] = 'finished',
): Outcome => ({
  ...{ run: `run-${seed}`, seed, state, steps: 4, final, best, best_step: 2, wall_s: 1.5 },
});

const comparison: Comparison = {
  sweep: 'mine',
  keys: ['a.lr', 'b.lr'],
  points: [
    {
      ...{ label: 'PPO, x', config: 'base', name: 'PPO', values: { 'a.lr': 0.1, 'b.lr': null } },
      ...{ final: estimate([0.5, 0.75]), best: estimate([0.75, 0.75]), difference: null, stopped: null },
      runs: [run(1, 0.5, 0.75), run(2, 0.75, 0.75)],
    },
    {
      ...{ label: 'y', config: 'base', name: 'say "b"', values: { 'a.lr': 0.2, 'b.lr': [1, 2] } },
      ...{ final: null, best: null, difference: null, stopped: null, runs: [run(1, null, null, 'failed')] },
    },
  ],
};

describe('estimate', () => {
  test('returns mean and half width of the 95 % interval of Student’s t', () => {
    expect(estimate([])).toBeNull();
    expect(estimate([0.25])).toEqual({ mean: 0.25, interval: null, n: 1 });
    expect(estimate([0.25, 0.75])).toEqual({ mean: 0.5, interval: null, n: 2 }); // an interval needs three
    // scipy.stats.t.interval(0.95, 2, loc=mean, scale=sem) of [.1, .2, .6]: half width 0.65724
    const three = estimate([0.1, 0.2, 0.6])!;
    expect(three.mean).toBeCloseTo(0.3, 12);
    expect(three.interval).toBeCloseTo(0.65724, 3);
    expect(estimate([0.5, 0.5, 0.5])!.interval).toBe(0);
  });

  test('narrows with more seeds, also beyond the end of the table', () => {
    const width = (n: number) => estimate(Array.from({ length: n }, (_, i) => i % 2))!.interval!;
    for (const n of [4, 10, 30, 32]) expect(width(n + 2)).toBeLessThan(width(n));
    expect(width(1000)).toBeCloseTo(1.96 * Math.sqrt(250 / 999 / 1000), 5);
  });
});

test('the table shows what differs, and the progress of each point', () => {
  expect(comparisonTable(comparison).split('\n')).toEqual([
    'name     a.lr  b.lr   final success   best success    runs',
    'PPO      0.1   null   50.0 %, 75.0 %  75.0 %, 75.0 %  2 finished',
    'say "b"  0.2   [1,2]  –               –               1 failed',
  ]);
});

test('from three seeds on, the table has intervals and paired differences', () => {
  const values = { base: [0.5, 0.6, 0.7], own: [0.7, 0.7, 0.9] };
  const [first, second] = comparison.points;
  const rowOf = (list: readonly number[]) => list.map((value, i) => run(i + 1, value, value));
  const difference = pairedDifference(values.base, values.own, { seed: 1 });
  const points: Comparison['points'] = [
    { ...first, final: estimate(values.base), best: estimate(values.base), runs: rowOf(values.base) },
    {
      ...second,
      ...{ final: estimate(values.own), best: estimate(values.own), runs: rowOf(values.own), difference },
      stopped: { step: 8, value: 0.7, rank: 2, of: 2 },
    },
  ];
  expect(comparisonTable({ ...comparison, points }).split('\n')).toEqual([
    'name     a.lr  b.lr   final success  best success   difference              runs',
    'PPO      0.1   null   60.0 % ± 24.8  60.0 % ± 24.8  –                       3 finished',
    'say "b"  0.2   [1,2]  76.7 % ± 28.7  76.7 % ± 28.7  +16.7 ± 14.3 (d +2.89)  3 finished (halving, step 8)',
  ]);
});

test('CSV has one line per run', () => {
  expect(comparisonCsv(comparison).split('\r\n')).toEqual([
    'point,config,name,a.lr,b.lr,run,seed,state,steps,final,best,best_step,wall_s',
    '"PPO, x",base,PPO,0.1,,run-1,1,finished,4,0.5,0.75,2,1.5',
    '"PPO, x",base,PPO,0.1,,run-2,2,finished,4,0.75,0.75,2,1.5',
    'y,base,"say ""b""",0.2,"[1,2]",run-1,1,failed,4,,,2,1.5',
    '',
  ]);
});

test('unfinished runs are reported', () => {
  expect(incomplete(comparison)).toBe(
    'sweep mine: 1 of 3 runs are not finished (failed: run-1): run the same command to continue them',
  );
  expect(incomplete({ ...comparison, points: [comparison.points[0]] })).toBeUndefined();
  const [finished, failed] = comparison.points;
  const stopped = { ...failed, stopped: { step: 8, value: null, rank: 2, of: 2 } };
  expect(incomplete({ ...comparison, points: [finished, stopped] })).toBeUndefined();
});

test('a run with a damaged status is one row with its reason', () => {
  const folder = partial<RunFolder>({
    id: 'run-3',
    file: () => '/nowhere/metrics.jsonl',
    readStatus: () => {
      throw new UserError('store: /runs/run-3/status.json is damaged (cut off): restore it or remove the run');
    },
  });
  const outcome = outcomeOf(folder, 3);
  expect(outcome).toMatchObject({ run: 'run-3', seed: 3, state: 'damaged', final: null });
  const [point, other] = comparison.points;
  const damaged: Comparison = { ...comparison, points: [{ ...point, runs: [...point.runs, outcome] }, other] };
  expect(comparisonTable(damaged)).toContain('2 finished, 1 damaged');
  expect(comparisonCsv(damaged).split('\r\n')).toHaveLength(6);
  expect(incomplete(damaged)).toBe(
    'sweep mine: run-3 cannot be compared: store: /runs/run-3/status.json is damaged (cut off): restore it or remove the run',
  );
});
