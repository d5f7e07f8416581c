// Lead times and false alarms of alarms, on invented runs.
import { expect, test } from 'vitest';
import { alarmRules } from '../../../../extension/run-data/alarm-rules';
import {
  alarmFigures,
  byArms,
  byOutcome,
  calibratePromptDependence,
  firstAlarm,
  halfGainLost,
} from '../../../../extension/run-data/claims/alarm-lead';
import type { MeasuredRun } from '../../../../extension/run-data/claims/run-measure';

const mi = 'collapse_trajectory_sample/mi_estimate';
const run = (seed: number, success: readonly number[], information: readonly number[]): MeasuredRun => ({
  arm: 'a',
  seed,
  steps: success.map((value, i) => ({ step: i, success: value, ...(i > 0 && { [mi]: information[i] }) })),
});
const success = [0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8, 0.7, 0.6, 0.3, 0.2, 0.2];
const healthySuccess = success.map((value, i) => (i < 7 ? value : 0.8));
const falling = [0, 0.2, 0.6, 1, 1, 1, 0.7, 0.4, 0.3, 0.2, 0.1, 0.1];
const level = falling.map((value, i) => (i < 6 ? value : i % 2 === 0 ? 0.7 : 0.9));
const rules = [alarmRules.prompt_dependence];
/** Runs divided by arms. */
const inArms = (collapsing: readonly MeasuredRun[], healthy: readonly MeasuredRun[]) =>
  byArms(
    [...collapsing.map(each => ({ ...each, arm: 'lost' })), ...healthy.map(each => ({ ...each, arm: 'kept' }))],
    { collapsing: ['lost'], healthy: ['kept'] },
    0,
  );

test('half of the gain is lost when the means of two validations stay below the middle of start and best', () => {
  expect(halfGainLost(run(1, success, falling), 0)).toBe(9);
  expect(halfGainLost(run(1, success, falling), 10)).toBe(10);
  expect(halfGainLost(run(1, healthySuccess, level), 0)).toBeNull();
  expect(halfGainLost(run(1, success.map(() => 0.2), level), 0)).toBeNull(); // prettier-ignore
});

test('an alarm is raised in the first diagnosis under 40 % of the best one, and not before `from`', () => {
  expect(firstAlarm(run(1, success, falling), rules, 0)).toBe(8);
  expect(firstAlarm(run(1, success, falling), rules, 9)).toBe(9);
  expect(firstAlarm(run(1, success, level), rules, 0)).toBeNull();
});

test('figures count detections, leads and false alarms', () => {
  const late = falling.map((_, i) => (i < 10 ? falling[Math.min(i, 5)] : 0.1));
  const collapsing = [run(1, success, falling), run(2, success, late), run(3, healthySuccess, level)];
  const healthy = [run(1, healthySuccess, level), run(2, healthySuccess, falling)];
  expect(alarmFigures(inArms(collapsing, healthy), rules, 0)).toEqual({
    ...{ runs: 3, collapsed: 2, detected: 0.5, leads: [1, -1], healthy: 2, falseAlarms: 0.5, ungained: null },
  });
});

test('without arms, runs are divided by whether they gained success and lost half of the gain', () => {
  const flat = success.map((_, i) => 0.2 + 0.09 * (i % 2));
  const runs = [run(1, success, falling), run(2, healthySuccess, level), run(3, flat, falling), run(4, flat, level)];
  const divided = byOutcome(runs, 0);
  expect(divided).toEqual({
    ...{ collapsing: [{ run: runs[0], lost: 9 }], healthy: [runs[1]], ungained: [runs[2], runs[3]] },
  });
  expect(alarmFigures(divided, rules, 0)).toEqual({
    ...{ runs: 1, collapsed: 1, detected: 1, leads: [1], healthy: 1, falseAlarms: 0, ungained: { runs: 2, alarms: 1 } },
  });
});

test('a threshold is chosen on every second seed and judged on the others', () => {
  const collapsing = [1, 2, 3, 4].map(seed => run(seed, success, falling));
  const healthy = [1, 2, 3, 4].map(seed => run(seed, healthySuccess, seed % 2 === 0 ? falling : level));
  const found = calibratePromptDependence(inArms(collapsing, healthy), 0)!;
  expect(found).toMatchObject({ steps: 1, fit: { detected: 1, falseAlarms: 0 } });
  expect(found.share).toBeGreaterThan(0.4);
  expect(found.share).toBeLessThanOrEqual(0.7);
  expect(found.check).toMatchObject({ detected: 1, falseAlarms: 1 });
  expect(calibratePromptDependence(inArms([], healthy), 0)).toBeNull();
});
