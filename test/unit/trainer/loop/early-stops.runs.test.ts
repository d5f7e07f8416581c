// The rules that end a run early, on metrics in a run's format. training-features.test.ts checks that the rules end a
// real run.
import { describe, expect, test } from 'vitest';
import { afterStep, afterValidation, earlyStop, nothingSeen } from '../../../../extension/trainer/loop/early-stops';
import type { Watch } from '../../../../extension/trainer/loop/early-stops';

const rules = {
  workbench: {
    early_stops: ['reward_variance_collapse' as const, 'low_validation_success' as const],
    trajectory_filter: { strategy: 'none' as const, value: 0.25, metric: 'reward' as const, only_successful: true },
  },
  emptyStopSteps: 3,
};
const trained = (std: number) => ({ 'rollout/empty_after_filter': 0, 'rollout/in_group_reward_std': std });
const empty = { 'rollout/empty_after_filter': 1, 'rollout/in_group_reward_std': 0 };
const steps = (watch: Watch, metrics: Record<string, number>, times: number): Watch =>
  Array.from({ length: times }).reduce<Watch>(seen => afterStep(seen, metrics), watch);

describe('empty_filtered_steps', () => {
  test('triggers after the configured number of consecutive empty steps, and never for 0', () => {
    const two = steps(nothingSeen, empty, 2);
    expect(earlyStop(two, rules)).toBeNull();
    expect(earlyStop(afterStep(afterStep(two, trained(1)), empty), rules)).toBeNull();
    const stop = earlyStop(afterStep(two, empty), rules);
    expect(stop).toMatchObject({ type: 'empty_filtered_steps' });
    expect(stop?.sentence).toMatch(/^the rollout filter kept no group in 3 steps/);
    const trajectory_filter = { ...rules.workbench.trajectory_filter, strategy: 'top' as const };
    const best = { ...rules, workbench: { ...rules.workbench, trajectory_filter } };
    expect(earlyStop(afterStep(two, empty), best)?.sentence).toMatch(
      /^the filters kept no episode .*none of the kept groups succeeds/,
    );
    expect(earlyStop(steps(two, empty, 50), { ...rules, emptyStopSteps: 0 })).toBeNull();
  });
});

describe('reward_variance_collapse', () => {
  const baseline = steps(nothingSeen, trained(2), 10);

  test('triggers when ten consecutive steps are below a tenth of the mean of the first ten', () => {
    const nine = steps(baseline, trained(0.19), 9);
    expect(earlyStop(nine, rules)).toBeNull();
    const stop = earlyStop(afterStep(nine, trained(0.19)), rules);
    expect(stop).toMatchObject({ type: 'reward_variance_collapse' });
    expect(stop!.sentence).toMatch(
      /below 0\.200 in each of the last 10 steps; its mean over the first 10 steps was 2\.00 \(/,
    );
  });

  test('is postponed by ten steps by a single step at or above the threshold', () => {
    const up = afterStep(steps(baseline, trained(0.1), 9), trained(0.2));
    expect(earlyStop(steps(up, trained(0.1), 9), rules)).toBeNull();
    expect(earlyStop(steps(up, trained(0.1), 10), rules)).not.toBeNull();
  });

  test('counts empty steps neither in the baseline nor in the window', () => {
    const slow = steps(steps(steps(nothingSeen, trained(2), 5), empty, 2), trained(4), 5);
    expect(slow.firstStds).toEqual([2, 2, 2, 2, 2, 4, 4, 4, 4, 4]);
    const window = steps(steps(steps(slow, trained(0.2), 5), empty, 2), trained(0.2), 4);
    expect(earlyStop(window, rules)).toBeNull();
    expect(earlyStop(afterStep(window, trained(0.2)), rules)).not.toBeNull();
  });

  test('never triggers with a baseline of zero, nor if the rule is off', () => {
    expect(earlyStop(steps(nothingSeen, trained(0), 40), rules)).toBeNull();
    const off = { ...rules, workbench: { ...rules.workbench, early_stops: [] } };
    expect(earlyStop(steps(baseline, trained(0), 40), off)).toBeNull();
  });
});

describe('low_validation_success', () => {
  const validated = (watch: Watch, a: number, b: number): Watch =>
    afterValidation(watch, { 'val-env/A/success': a, 'val-env/B/success': b, 'val-env/A/pass@1': 0 });

  test('triggers if one environment’s success is below 1 % in five consecutive validations', () => {
    let watch = nothingSeen;
    for (const a of [0, 0, 0.01, 0, 0, 0, 0.009]) watch = validated(watch, a, 0.5);
    expect(earlyStop(watch, rules)).toBeNull();
    watch = validated(watch, 0, 0.5);
    expect(earlyStop(watch, rules)).toMatchObject({
      type: 'low_validation_success',
      sentence: expect.stringMatching(/^val-env\/A\/success was under 1 % in 5 validations in a row/),
    });
  });
});
