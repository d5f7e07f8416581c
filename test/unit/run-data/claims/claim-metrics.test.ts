// Saved metrics of a claim: they give the runs back, and a damaged line is named.
import { expect, test } from 'vitest';
import { claimCsv, metricsOf, readClaimCsv } from '../../../../extension/run-data/claims/claim-metrics';
import { claimSchema } from '../../../../extension/run-data/claims/claim-schema';
import type { MeasuredRun } from '../../../../extension/run-data/claims/run-measure';

const runs: MeasuredRun[] = [
  { arm: 'PPO, "none"', seed: 1, steps: [{ step: 0, success: 0.25 }, { step: 3, success: 0.5, mi: -0.125, time: 3 }] },
  { arm: 'GRPO', seed: 1_010_000, steps: [{ step: 0, success: 0.25 }] },
]; // prettier-ignore

test('the runs are read back with the metrics of the claim', () => {
  const text = claimCsv(runs, ['success', 'mi']);
  expect(text.split('\n').slice(0, 3)).toEqual([
    'arm,seed,step,metric,value',
    '"PPO, ""none""",1,0,success,0.25',
    '"PPO, ""none""",1,3,success,0.5',
  ]);
  const [first, second] = readClaimCsv(text);
  expect(first).toEqual({ ...runs[0], steps: [runs[0].steps[0], { step: 3, success: 0.5, mi: -0.125 }] });
  expect(second).toEqual(runs[1]);
});

test('a damaged line is named', () => {
  expect(() => readClaimCsv('arm,seed,step,metric,value\na,1,2,success,0.5\na,1,x,success,0.5\n')).toThrow(
    'metrics of a claim: line 3 is not arm,seed,step,metric,value: save the metrics again',
  );
});

test('the metrics of all tests are listed once', () => {
  const { tests: _, ...head } = { number: 1, title: 't', paper: 'p', tests: [] };
  const claim = claimSchema.parse({
    ...head,
    tests: [
      { test: 'level', name: 'a', arm: 'x', measure: { metric: 'm', over: 'o' }, above: 0 },
      { test: 'trend', name: 'b', metrics: ['g1', 'g2', 'g3'], measure: { metric: 'm' }, expect: 'rises' },
      { test: 'correlation', name: 'c', x: 'm', against: 'h', expect: 'positive' },
      { test: 'alarms', name: 'd', arms: { collapsing: ['x'], healthy: ['y'] }, alarms: ['entropy_rise'] },
    ],
  });
  expect(metricsOf(claim)).toEqual([
    ...['success', 'm', 'o', 'g1', 'g2', 'g3', 'h', 'actor/entropy', 'actor/entropy_limit'],
    'collapse_trajectory_sample/mi_estimate',
  ]);
});
