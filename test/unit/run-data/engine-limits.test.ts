// The limits of an engine on a server: the same list refuses configurations, and tells a form which controls to disable.
import { expect, test } from 'vitest';
import { configJsonSchema } from '../../../extension/trainer/config/schema';
import { schemaAt } from '../../../extension/common/json-schema';
import {
  brokenLimits,
  engineLimits,
  unmeasured,
  ignoredByEngine,
  limitsOf,
  permits,
  supportedText,
} from '../../../extension/run-data/engine-limits';
import { engineRules } from '../../../extension/trainer/config/engine-checks';
import { loadConfig } from '../../../extension/trainer/config/load-config';

const configured = (...overrides: string[]) =>
  loadConfig({
    configName: 'quickstart',
    overrides: ['lora.rank=8', ...overrides],
    presetFolders: ['media/presets'],
    workspace: '.',
  }).config;

test('every limited or ignored setting is a key of the configuration', () => {
  const keys = [
    ...engineLimits.flatMap(({ key, valueKey = key }) => [key, valueKey]),
    ...ignoredByEngine.map(({ key }) => key),
  ];
  expect(keys.filter(key => !schemaAt(configJsonSchema(), key.split('.')))).toEqual([]);
});

test('what is supported is permitted, and all else is not', () => {
  expect(permits({ supported: { only: 1 } }, 1)).toBe(true);
  expect(permits({ supported: { only: 1 } }, '1')).toBe(false);
  expect(permits({ supported: { above: 0 } }, 0)).toBe(false);
  expect(permits({ supported: { above: 0 } }, 8)).toBe(true);
  expect(permits({ supported: { not: ['entropy'] } }, 'entropy_std')).toBe(false);
  expect(permits({ supported: { not: ['entropy'] } }, 'reward')).toBe(true);
  expect([{ only: null }, { above: 0 }, { not: ['gae'] }].map(supportedText)).toEqual([
    'only null',
    'above 0',
    'not gae',
  ]);
});

test('a configuration is refused by the limits that it breaks, and only on a server', () => {
  const config = configured('algorithm.adv_estimator=gae', 'actor_rollout_ref.rollout.temperature=0.7');
  const broken = brokenLimits(config, unmeasured).map(({ limit: { key }, value }) => [key, value]);
  expect(broken).toEqual([['actor_rollout_ref.rollout.temperature', 0.7]]);
  expect(engineRules(config)).toEqual([]);
  const workbench = { ...config.workbench, engine: 'tinker' as const, engine_url: 'http://gpu:8000' };
  expect(engineRules({ ...config, workbench }).map(({ key, sentence }) => `${key} ${sentence}`)).toEqual([
    'actor_rollout_ref.rollout.temperature is 0.7, which workbench.engine=tinker does not support: set it to 1, the temperature at which the server trains',
  ]);
});

test('limits of training do not concern an evaluation', () => {
  const config = configured(
    'actor_rollout_ref.rollout.temperature=0.7',
    'trainer.val_only=true',
    'actor_rollout_ref.rollout.val_kwargs.logprobs=0',
  );
  expect(brokenLimits(config, unmeasured)).toEqual([]);
});

test('only a server that was measured to have no critic limits the estimator', () => {
  const refused = (critic: boolean | null) =>
    limitsOf({ ...unmeasured, critic }).flatMap(({ key, supported }) =>
      key === 'algorithm.adv_estimator' && 'not' in supported ? supported.not : [],
    );
  expect(refused(false)).toContain('gae');
  for (const critic of [null, true]) expect(refused(critic)).not.toContain('gae');
  expect(brokenLimits(configured('algorithm.adv_estimator=gae'), { ...unmeasured, critic: false })).toHaveLength(1);
});

test('rollouts by older weights are limited on a server that was measured to keep no versions', () => {
  const broken = (keepsVersions: boolean | null, ...overrides: string[]) =>
    brokenLimits(configured('workbench.engine=tinker', 'workbench.engine_url=http://gpu:8000', ...overrides), {
      ...unmeasured,
      keepsVersions,
    }).map(({ limit: { key }, value }) => [key, value]);
  const ahead = 'workbench.max_staleness=2';
  expect(broken(false, ahead)).toEqual([['workbench.max_staleness', 2]]);
  for (const keeps of [null, true]) expect(broken(keeps, ahead)).toEqual([]);
  expect(broken(false, 'workbench.max_staleness=0')).toEqual([]);
  expect(broken(false, ahead, 'trainer.val_only=true', 'actor_rollout_ref.rollout.val_kwargs.logprobs=0')).toEqual([]);
});

test('a limit of the critic concerns runs with a critic only', () => {
  const moments = 'critic.optim.moments=int8';
  const keys = (...overrides: string[]) =>
    brokenLimits(configured(...overrides), unmeasured).map(({ limit: { key } }) => key);
  expect(keys(moments)).toEqual([]);
  expect(keys(moments, 'algorithm.adv_estimator=gae')).toEqual(['critic.optim.moments']);
});
