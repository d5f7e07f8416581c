// The alarm prompt_dependence on the panel of test/experiments/5-regimes.yaml: its threshold was chosen on every second
// run, and is checked on the others.
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
