// The alarm prompt_dependence on the panel of test/experiments/5-regimes.yaml, of which no run chose its threshold, and on
// the runs of claim 1, of which every second seed did.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { alarmRules, shareOfBest } from '../../../../extension/run-data/alarm-rules';
import { firstAlarm } from '../../../../extension/run-data/claims/alarm-lead';
import { halves, readPanelCsv, type PanelRun } from '../../../experiments/regime-panel';

const csv = join(__dirname, '../../../experiments/results/5-regimes.csv');
const { fit, check } = halves(readPanelCsv(readFileSync(csv, 'utf8')));
const rule = alarmRules.prompt_dependence;

/** Number of runs with an alarm, and number of runs, of the arms whose names begin with one of the words. */
function alarms(runs: readonly PanelRun[], kinds: readonly string[], used = rule): [number, number] {
  const own = runs.filter(({ arm }) => kinds.some(kind => arm.startsWith(kind)));
  const raised = own.filter(({ arm, seed, steps }) => {
    const measured = steps.map(({ step, information }) => ({ step, [rule.metric]: information }));
    return firstAlarm({ arm, seed, steps: measured }, [used], 0) !== null;
  });
  return [raised.length, own.length];
}

test('is raised in every collapsed run and in no other run, also in the half that did not choose it', () => {
  expect(alarms(fit, ['healthy', 'compressed'])).toEqual([0, 12]);
  expect(alarms(fit, ['template', 'low entropy'])).toEqual([9, 9]);
  expect(alarms(check, ['healthy', 'compressed'])).toEqual([0, 12]);
  expect(alarms(check, ['template', 'low entropy'])).toEqual([9, 9]);
});

test('would have false alarms with a higher threshold', () => {
  expect(alarms(fit, ['healthy'], { ...rule, bound: shareOfBest(0.7) })).toEqual([1, 8]);
});

test('comes in every run of claim 1 that collapsed, and in none that did not', () => {
  const saved = join(__dirname, '../../../experiments/results/claim_1_collapse.csv');
  const rows = readFileSync(saved, 'utf8').trim().split('\n').slice(1);
  const runs = new Map<string, { arm: string; seed: number; steps: Map<number, number> }>();
  for (const [arm, seed, step, metric, value] of rows.map(row => row.split(','))) {
    if (metric !== rule.metric) continue;
    const key = `${arm} ${seed}`;
    const run = runs.get(key) ?? { arm, seed: Number(seed), steps: new Map<number, number>() };
    runs.set(key, run);
    run.steps.set(Number(step), Number(value));
  }
  const raised = [...runs.values()].filter(({ arm, seed, steps }) => {
    const measured = Array.from(steps, ([step, value]) => ({ step, [rule.metric]: value }));
    return firstAlarm({ arm, seed, steps: measured }, [rule], 15) !== null;
  });
  expect([runs.size, raised.length]).toEqual([12, 6]);
  expect(new Set(raised.map(({ arm }) => arm))).toEqual(new Set(['noise']));
});
