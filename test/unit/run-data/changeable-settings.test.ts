// The configuration in effect after the setting events of a run folder, including invalid events.
import { expect, it } from 'vitest';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { configInEffect } from '../../../extension/run-data/changeable-settings';

const config = { trainer: { critic_warmup: 1, total_training_steps: 5 }, list: [1] };
const setting = (key: string, to = 9): RunEvent => ({
  time: '',
  step: 1,
  kind: 'setting',
  message: '',
  data: { key, from: 1, to },
});

it('an event changes an existing value', () => {
  const to = { ...config, trainer: { ...config.trainer, total_training_steps: 3 } };
  expect(configInEffect(config, [setting('trainer.total_training_steps', 3)])).toEqual(to);
  expect(config.trainer.total_training_steps).toBe(5);
});

it.each([
  'trainer.critic_warmup',
  'trainer.none',
  'none.at.all',
  'trainer.critic_warmup.deeper',
  'x',
  '',
  '.',
  '__proto__.polluted',
  'constructor.prototype.polluted',
  '__proto__',
])('the key %j changes nothing', key => {
  expect(configInEffect(config, [setting(key)])).toEqual(config);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});
