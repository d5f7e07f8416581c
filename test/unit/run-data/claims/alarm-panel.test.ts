// The alarm prompt_dependence on the panel of test/experiments/5-regimes.yaml, of which no run chose its threshold, and on
// the runs of claim 1, of which every second seed did.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { maximum } from '../../../../extension/common/lists';
import { alarmRules, shareOfBest } from '../../../../extension/run-data/alarm-rules';
import {
  alarmFigures,
  byArms,
  calibratePromptDependence,
  firstAlarm,
} from '../../../../extension/run-data/claims/alarm-lead';
import { readClaimCsv } from '../../../../extension/run-data/claims/claim-metrics';
import { repository } from '../../trainer/config/presets';
import { halves, readPanelCsv, type PanelRun } from '../../../experiments/regime-panel';

const results = join(repository, 'test/experiments/results');
const { fit, check } = halves(readPanelCsv(readFileSync(join(results, '5-regimes.csv'), 'utf8')));
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
  readClaimCsv(readFileSync(join(results, `${name}.csv`), 'utf8')),
);

const divided = sets.map(runs => byArms(runs, { collapsing: ['noise'], healthy: ['less noise'] }, 15));

/** Over both sets: collapses with an alarm in time, runs without collapse with an alarm, and the longest lead. */
function figures(share: number): { inTime: number; falseAlarms: number; lead: number } {
  const used = { ...rule, bound: shareOfBest(share) };
  const found = divided.map(runs => alarmFigures(runs, [used], 15));
  expect(found.map(({ runs, collapsed, healthy }) => [runs, collapsed, healthy])).toEqual([[6, 6, 6], [6, 6, 6]]); // prettier-ignore
  const inTime = found.reduce((sum, { collapsed, detected }) => sum + Math.round(collapsed * detected), 0);
  const falseAlarms = found.reduce((sum, each) => sum + Math.round(each.healthy * each.falseAlarms), 0);
  return { inTime, falseAlarms, lead: maximum(found.flatMap(({ leads }) => leads)) };
}

test('REPRODUCTION.md has its figures over the runs of claim 1 for several thresholds', () => {
  const page = readFileSync(join(repository, 'docs/REPRODUCTION.md'), 'utf8');
  const numbers = (begin: string): number[] =>
    [...(new RegExp(`^\\| ${begin}[^|]*\\|(.*)$`, 'm').exec(page)?.[1] ?? '').matchAll(/\d+/g)].map(Number);
  const shares = numbers('alarm below this share');
  expect(shares).toContain(40);
  const found = shares.map(percent => figures(percent / 100));
  expect(numbers('collapses with an alarm in time, of 12')).toEqual(found.map(({ inTime }) => inTime));
  expect(numbers('runs without collapse with an alarm, of 12')).toEqual(found.map(({ falseAlarms }) => falseAlarms));
});

test('the texts on its threshold state these figures', () => {
  const { inTime, falseAlarms, lead } = figures(0.4);
  expect(falseAlarms).toBe(0);
  expect(rule.basis).toContain(`in time in ${inTime} of 12 collapses, and in none of 12 other runs`);
  const metrics = readFileSync(join(repository, 'docs/METRICS.md'), 'utf8');
  expect(metrics).toContain(
    `in time in ${inTime} of 12 that collapse, at most ${lead} steps before success had lost half of its gain, and in none of 12 that do not`,
  );
  const [collapsed, others] = [['template', 'low entropy'], ['healthy', 'compressed']].map(kinds => alarms([...fit, ...check], kinds)); // prettier-ignore
  expect([collapsed[0], others[0]]).toEqual([collapsed[1], 0]);
  expect(metrics).toContain(
    `a panel of ${collapsed[1] + others[1]} other runs, it was raised in all ${collapsed[1]} collapsed runs and in none of the ${others[1]} others`,
  );
});

test('was chosen on every second seed of the first set', () =>
  expect(calibratePromptDependence(divided[0], 15)).toMatchObject({ share: 0.4, steps: 1 }));
