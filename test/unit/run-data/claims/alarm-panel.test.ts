// The alarm prompt_dependence on the panel of test/experiments/5-regimes.yaml, of which no run chose its threshold, and on
// the runs of claim 1, of which every second seed did.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { alarmRules, shareOfBest } from '../../../../extension/run-data/alarm-rules';
import { alarmFigures, calibratePromptDependence, firstAlarm } from '../../../../extension/run-data/claims/alarm-lead';
import { readClaimCsv } from '../../../../extension/run-data/claims/claim-metrics';
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

/** The runs of claim 1, and those of an earlier version, of which every second seed chose the threshold. */
const sets = ['claim_1_collapse-first-set', 'claim_1_collapse'].map(name =>
  readClaimCsv(readFileSync(join(__dirname, `../../../experiments/results/${name}.csv`), 'utf8')),
);

/** In each set: runs with noise with an alarm in time, and runs with less noise with an alarm. */
const figures = (share: number): [number, number][] =>
  sets.map(runs => {
    const of = (arm: string) => runs.filter(run => run.arm === arm);
    const used = { ...rule, bound: shareOfBest(share) };
    const {
      runs: count,
      collapsed,
      detected,
      healthy,
      falseAlarms,
    } = alarmFigures(of('noise'), of('less noise'), [used], 15);
    expect([count, collapsed, healthy]).toEqual([6, 6, 6]);
    return [Math.round(6 * detected), Math.round(6 * falseAlarms)];
  });

test('REPRODUCTION.md has its figures over the runs of claim 1 for several thresholds', () => {
  expect(figures(0.3)).toEqual([[4, 0], [1, 0]]); // prettier-ignore
  expect(figures(0.35)).toEqual([[4, 0], [4, 0]]); // prettier-ignore
  expect(figures(0.4)).toEqual([[6, 0], [4, 0]]); // prettier-ignore
  expect(figures(0.45)).toEqual([[6, 2], [4, 1]]); // prettier-ignore
  expect(figures(0.5)).toEqual([[6, 2], [5, 1]]); // prettier-ignore
  expect(figures(0.6)).toEqual([[6, 4], [5, 6]]); // prettier-ignore
});

test('was chosen on every second seed of the first set', () => {
  const [noise, calm] = ['noise', 'less noise'].map(arm => sets[0].filter(run => run.arm === arm));
  expect(calibratePromptDependence(noise, calm, 15)).toMatchObject({ share: 0.4, steps: 1 });
});
