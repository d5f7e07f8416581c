// The alarm monitor of a run: events with their evidence, and which alarms end it.
import { expect, it } from 'vitest';
import { nothingWatched } from '../../../../extension/trainer/diagnostics/alarms';
import type { WatchState } from '../../../../extension/trainer/diagnostics/alarms';
import { alarmStop, checkAlarms } from '../../../../extension/trainer/loop/alarm-monitor';
import type { RunConfig } from '../../../../extension/trainer/config/schema';

const configured = (watch: RunConfig['workbench']['watch']) => ({ workbench: { watch } as RunConfig['workbench'] });

function played(watch: RunConfig['workbench']['watch']): { state: WatchState; events: unknown[][] } {
  const events: unknown[][] = [];
  const run = { config: configured(watch), journal: { event: (...event: unknown[]) => void events.push(event) } };
  let state = nothingWatched;
  for (let step = 1; step <= 16; step++)
    state = checkAlarms(run, state, step, { 'rollout/in_group_reward_std': step <= 10 ? 1 : 0.01 });
  return { state, events };
}

it('writes an alarm with its evidence, and ends the run if the alarm is configured to do so', () => {
  const watch = { enabled: true, stop_on: ['reward_variance' as const] };
  const { state, events } = played(watch);
  const sentence =
    'in-group reward std was below 10 % of its mean over the first 10 steps in each of the last 5 steps: 0.01, bound 0.1';
  expect(events).toEqual([
    [
      'alarm',
      sentence,
      { alarm: 'reward_variance', step: 15, metric: 'rollout/in_group_reward_std', value: 0.01, bound: 0.1 },
    ],
  ]);
  expect(alarmStop(state, configured(watch))).toEqual({
    type: 'reward_variance',
    sentence: `${sentence} (workbench.watch.stop_on)`,
  });
  expect(alarmStop(state, configured({ enabled: true, stop_on: ['entropy_rise'] }))).toBeNull();
});

it('raises no alarm if it is switched off', () => {
  const watch = { enabled: false, stop_on: ['reward_variance' as const] };
  const { state, events } = played(watch);
  expect([state, events]).toEqual([nothingWatched, []]);
  expect(alarmStop(state, configured(watch))).toBeNull();
});
