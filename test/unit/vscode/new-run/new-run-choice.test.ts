// The New Run page: the saved file and the overrides passed to a start have the same meaning.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { readConfigurationSchema } from '../../../../extension/vscode/configuration/configuration-schema';
import { groupsIn, overridesOf, yamlOfChoice } from '../../../../extension/vscode/new-run/new-run-choice';
import { fieldGroups } from '../../../../extension/vscode/new-run/new-run-fields';
import { planChoice } from '../../../../extension/vscode/new-run/new-run-plan';
import { ConfigError } from '../../../../extension/vscode/processes/cli-command';
import type { NewRunChoice } from '../../../../extension/protocol/new-run-page';
import { ConfigError as TrainerConfigError } from '../../../../extension/trainer/config/config-error';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { planRun } from '../../../../extension/trainer/plan/run-plan';

const presetFolders = ['media/presets'];
const workspace = mkdtempSync(join(tmpdir(), 'ragen-new-run-'));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const fields = fieldGroups(readConfigurationSchema('media/configuration.schema.json'));
const keys = fields.flatMap(({ fields: own }) => own.map(({ key }) => key));

const choiceOf = (part: Partial<NewRunChoice>): NewRunChoice => ({
  ...{ preset: 'quickstart', folder: workspace, values: {}, groups: null },
  ...part,
});

/** The CLI's commands, in this process. */
async function ask([command, ...args]: string[]): Promise<Record<string, unknown>> {
  const overrides = args.filter(arg => !arg.startsWith('--') && arg !== 'quickstart');
  const question = { configName: 'quickstart', overrides, presetFolders, workspace };
  try {
    if (command === 'config') return { config: loadConfig({ ...question, overrides: [] }).config };
    const { run, loaded } = await planRun(question, 'plan');
    return { run, config: loaded.config };
  } catch (error) {
    throw error instanceof TrainerConfigError ? new ConfigError([...error.problems]) : error;
  }
}
const quickstart = { name: 'quickstart', args: ['--config-name', 'quickstart'] };

it('shows existing keys, with choices where there are any', () => {
  const all = fields.flatMap(({ fields: own }) => own);
  expect(all.filter(({ help }) => help === '')).toEqual([]);
  expect(new Set(keys).size).toBe(keys.length);
  const kind = (key: string) => all.find(field => field.key === key)!;
  expect(kind('actor_rollout_ref.actor.use_kl_loss').kind).toBe('flag');
  expect(kind('algorithm.adv_estimator')).toMatchObject({ kind: 'choice', choices: expect.arrayContaining(['grpo']) });
  expect(kind('actor_rollout_ref.actor.optim.lr').kind).toBe('number');
  expect(kind('model_path').kind).toBe('text');
});

it('gives the same result as a file and as overrides', () => {
  const count = fc.integer({ min: 0, max: 3 });
  const groups = fc.record({ QuickFrozenLake: fc.constant(8), Bandit: count, CoordSokoban: count });
  const values = fc.record(
    {
      'trainer.experiment_name': fc.constantFrom('one', 'a name of words', 'null-model', '#7', 'it: is', '12'),
      'trainer.total_training_steps': fc.integer({ min: 1, max: 999 }).map(String),
      'actor_rollout_ref.actor.optim.lr': fc.constantFrom('1e-6', '0.001', ' 3e-4 '),
      'actor_rollout_ref.actor.use_kl_loss': fc.constantFrom('true', 'false'),
      'actor_rollout_ref.actor.use_ref': fc.constant('true'),
      'algorithm.adv_estimator': fc.constantFrom('grpo', 'rloo'),
      ppo_mini_batch_size: fc.constantFrom('16', '32'),
    },
    { requiredKeys: [] },
  );
  const choices = fc.record({ values, groups: fc.option(fc.record({ train: groups, val: groups })) });
  fc.assert(
    fc.property(choices, ({ values: given, groups: chosen }) => {
      const choice = choiceOf({
        values: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
        groups: chosen,
      });
      const file = join(workspace, 'saved.yaml');
      writeFileSync(file, yamlOfChoice(choice, 'quickstart', 'a test'));
      const load = (source: object) =>
        attempt(() => loadConfig({ overrides: [], presetFolders, workspace, ...source }).config);
      const saved = load({ configFile: file });
      const started = load({ configName: 'quickstart', overrides: overridesOf(choice) });
      expect(saved).toEqual(started);
    }),
    { numRuns: 60 },
  );
});

describe('the plan of a form', () => {
  it('contains values, environments, memory and step time', async () => {
    const model_path = resolve('media/models/ragen-tiny');
    const choice = choiceOf({ values: { 'trainer.total_training_steps': '7', model_path } });
    const planned = await planChoice(choice, quickstart, keys, ask);
    expect(planned.problems).toEqual([]);
    expect(planned.values['trainer.total_training_steps']).toBe('7');
    expect(planned.values['actor_rollout_ref.actor.use_kl_loss']).toBe('false');
    expect(Object.keys(planned.values)).toEqual(keys);
    expect(planned.tags).toContainEqual({ tag: 'QuickFrozenLake', environment: 'frozen_lake' });
    expect(planned.groups.train).toEqual({ QuickFrozenLake: 16 });
    expect(planned.estimate!.peak.bytes).toBeGreaterThan(planned.estimate!.model.parameters! * 4);
    expect(planned.estimate!.time!.total_s).toBeCloseTo(7 * planned.estimate!.time!.step_s);
    expect(planned.yaml).toContain('total_training_steps: 7');
  });

  it('names the key of an invalid value, and keeps the other values', async () => {
    const choice = choiceOf({ values: { 'actor_rollout_ref.actor.optim.lr': '-1' } });
    const { problems, estimate, values } = await planChoice(choice, quickstart, keys, ask);
    expect(estimate).toBeNull();
    expect(problems.map(({ key }) => key)).toContain('actor_rollout_ref.actor.optim.lr');
    expect(values['trainer.total_training_steps']).toBe('24');
  });

  it.each(['nobody/nothing-of-this-name', './no-such-folder'])(
    'marks the model %s, which cannot be loaded, in its field',
    async model_path => {
      vi.stubEnv('HF_HUB_OFFLINE', '1');
      vi.stubEnv('HF_HOME', join(workspace, 'hub'));
      const { problems, estimate } = await planChoice(choiceOf({ values: { model_path } }), quickstart, keys, ask);
      vi.unstubAllEnvs();
      expect(estimate).toBeNull();
      expect(problems).toEqual([{ key: 'model_path', message: expect.stringContaining(model_path) as string }]);
    },
  );

  it('omits environments without groups, and reports their number', () => {
    const groups = { train: { A: 3, B: 0 }, val: { A: 0, B: 2 } };
    expect(overridesOf(choiceOf({ groups }))).toEqual([
      'es_manager.train.env_groups=3',
      'es_manager.train.env_configs.tags=["A"]',
      'es_manager.train.env_configs.n_groups=[3]',
      'es_manager.val.env_groups=2',
      'es_manager.val.env_configs.tags=["B"]',
      'es_manager.val.env_configs.n_groups=[2]',
    ]);
    const config = { es_manager: { train: { env_configs: { tags: ['A', 'B'], n_groups: [1, 2] } } } };
    expect(groupsIn(config, 'train')).toEqual({ A: 1, B: 2 });
    expect(groupsIn(config, 'val')).toEqual({});
  });
});

/** The result, or the keys of its problems: positions differ between a file and overrides. */
function attempt<T>(work: () => T): T | string[] {
  try {
    return work();
  } catch (error) {
    if (error instanceof TrainerConfigError) return error.problems.map(({ key }) => key);
    throw error;
  }
}
