// The New Run page: the saved file and the overrides passed to a start have the same meaning.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { readConfigurationSchema } from '../../../../extension/vscode/configuration/configuration-schema';
import { choicesOfRun, groupsIn, overridesOf, yamlOfChoice } from '../../../../extension/vscode/new-run/new-run-choice';
import { fieldGroups } from '../../../../extension/vscode/new-run/new-run-fields';
import { engineKeys, type KeptEngine } from '../../../../extension/vscode/engines/kept-engines';
import { planChoice, type ConfigPlanner } from '../../../../extension/vscode/new-run/new-run-plan';
import { ConfigError } from '../../../../extension/vscode/processes/cli-command';
import type { NewRunChoice } from '../../../../extension/protocol/new-run-page';
import type { PlanQuestion } from '../../../../extension/protocol/planning';
import { ConfigError as TrainerConfigError } from '../../../../extension/trainer/config/config-error';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { planRun } from '../../../../extension/trainer/plan/run-plan';

const presetFolders = ['media/presets'];
const workspace = mkdtempSync(join(tmpdir(), 'ragen-new-run-'));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const fields = fieldGroups(readConfigurationSchema('media/configuration.schema.json'));
const keys = fields.flatMap(({ fields: own }) => own.map(({ key }) => key));

const choiceOf = (part: Partial<NewRunChoice>): NewRunChoice => ({
  ...{ preset: 'quickstart', folder: workspace, engine: '', values: {}, overrides: '', groups: null, sweep: null },
  ...part,
});

/** The planning process's answers, in this process. */
const planner: ConfigPlanner = {
  check: async question => attemptPlan(() => ({ config: loadConfig({ ...question, presetFolders }).config })),
  plan: async question =>
    attemptPlan(async () => {
      const { run, loaded } = await planRun({ ...question, presetFolders }, 'plan');
      return { run, config: loaded.config };
    }),
};
async function attemptPlan<T>(work: () => T): Promise<Awaited<T>> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof TrainerConfigError ? new ConfigError([...error.problems]) : error;
  }
}
const quickstart = {
  ...{ name: 'quickstart', args: ['--config-name', 'quickstart'] },
  asked: { configName: 'quickstart' },
  sweep: { config_name: 'quickstart' },
};

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

it('shows the overrides of a run in its fields and in one line, with the same meaning', () => {
  const text = fc.constantFrom('3', '1e-4', 'a', '"two words"', '[1, 2]', "'x y'");
  const override = fc.oneof(
    fc.tuple(fc.constantFrom(...keys), text).map(([key, value]) => `${key}=${value}`),
    fc.tuple(fc.constantFrom('a.b', '+a.c', '++a.d'), text).map(([key, value]) => `${key}=${value}`),
    fc.constant('~a.e'),
  );
  const lists = fc.uniqueArray(override, { selector: each => each.split('=')[0], maxLength: 8 });
  fc.assert(
    fc.property(lists, overrides => {
      const again = overridesOf(choiceOf(choicesOfRun(overrides, keys)));
      const plain = (each: string) => each.replace(/=(["'])(.*)\1$/, '=$2');
      expect(again.map(plain).sort()).toEqual(overrides.map(plain).sort());
    }),
  );
});

it('writes other overrides into the saved file', () => {
  const choice = choiceOf({ overrides: 'actor_rollout_ref.actor.grad_clip=0.5 ++a.b=[1,2] ~a.c' });
  const yaml = yamlOfChoice(choice, 'quickstart', 'a test');
  expect(yaml).toContain('grad_clip: 0.5');
  expect(yaml).toMatch(/^a:\n {2}b:/m);
  expect(yaml).not.toContain('c:');
});

describe('the plan of a form', () => {
  it('contains values, environments, memory and step time', async () => {
    const model_path = resolve('media/models/ragen-tiny');
    const choice = choiceOf({ values: { 'trainer.total_training_steps': '7', model_path } });
    const planned = await planChoice(choice, quickstart, keys, planner);
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
    const { problems, estimate, values } = await planChoice(choice, quickstart, keys, planner);
    expect(estimate).toBeNull();
    expect(problems.map(({ key }) => key)).toContain('actor_rollout_ref.actor.optim.lr');
    expect(values['trainer.total_training_steps']).toBe('24');
  });

  it.each(['nobody/nothing-of-this-name', './no-such-folder'])(
    'marks the model %s, which cannot be loaded, in its field',
    async model_path => {
      vi.stubEnv('HF_HUB_OFFLINE', '1');
      vi.stubEnv('HF_HOME', join(workspace, 'hub'));
      const { problems, estimate } = await planChoice(choiceOf({ values: { model_path } }), quickstart, keys, planner);
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

describe('the plan of a form on a kept engine', () => {
  const facts = { at: '', server: null, critic: false, keepsVersions: true, roundTripMs: 1, tokensPerSecond: 9 };
  const engine: KeptEngine = { name: 'gpu', url: 'https://gpu:8000', model: 'a/b', keyEnv: 'A_KEY', facts };
  const planOf = (values: Record<string, string>, on = engine) =>
    planChoice(
      choiceOf({
        engine: 'gpu',
        values: { model_path: resolve('media/models/ragen-tiny'), 'lora.rank': '8', ...values },
      }),
      quickstart,
      keys,
      planner,
      { engine: on },
    );

  it('names the server and the variable of the key, and never a key', async () => {
    const { problems, engine: found, yaml } = await planOf({});
    expect(problems).toEqual([]);
    expect(found).toEqual({ url: 'https://gpu:8000', model: 'a/b' });
    expect(yaml).toContain(
      'workbench:\n  engine: tinker\n  engine_url: https://gpu:8000\n  engine_model: a/b\n  engine_api_key_env: A_KEY\n',
    );
    const file = join(workspace, 'engine.yaml');
    writeFileSync(file, yaml);
    const saved = loadConfig({ configFile: file, overrides: [], presetFolders, workspace }).config;
    const choice = choiceOf({ values: { 'lora.rank': '8' } });
    const overrides = overridesOf(choice, engineKeys({ ...engine, keyEnv: null, model: null }));
    const { workbench } = loadConfig({ configName: 'quickstart', overrides, presetFolders, workspace }).config;
    expect(saved.workbench).toEqual({ ...workbench, engine_model: 'a/b', engine_api_key_env: 'A_KEY' });
    expect(workbench).toMatchObject({ engine_url: 'https://gpu:8000', engine_model: null, engine_api_key_env: null });
  });

  it('takes the rates of the newest test of the engine, else assumed ones', async () => {
    const asked: PlanQuestion[] = [];
    const listening = { ...planner, plan: (question: PlanQuestion) => (asked.push(question), planner.plan(question)) };
    const choice = choiceOf({
      engine: 'gpu',
      values: { model_path: resolve('media/models/ragen-tiny'), 'lora.rank': '8' },
    });
    const ratesOf = async (on: KeptEngine) =>
      (await planChoice(choice, quickstart, keys, listening, { engine: on })).estimate?.remote?.rates;
    expect(await ratesOf(engine)).toMatchObject({ basis: 'given', round_trip_s: 0.001, sampled_per_s: 9 });
    expect(await ratesOf({ ...engine, facts: null })).toMatchObject({ basis: 'assumed' });
    expect(asked.map(({ rates }) => rates)).toEqual([{ round_trip_s: 0.001, sampled_per_s: 9 }, {}]);
  });

  it('marks rollouts by older weights on an engine that was measured to keep no versions', async () => {
    const kept = await planOf({ 'workbench.max_staleness': '1' });
    expect(kept.problems).toEqual([]);
    const live: KeptEngine = { ...engine, facts: { ...facts, keepsVersions: false } };
    const { problems } = await planOf({ 'workbench.max_staleness': '1' }, live);
    expect(problems).toEqual([
      {
        key: 'workbench.max_staleness',
        message:
          'config: workbench.max_staleness is 1, which the engine gpu does not support: set it to 0, or use a server that keeps published versions',
      },
    ]);
  });

  it('marks values that every server refuses, and those that this server was measured not to support', async () => {
    const refused = await planOf({ 'lora.rank': '0' });
    expect(refused.problems).toEqual([
      { key: 'lora.rank', message: expect.stringContaining('workbench.engine=tinker does not support') as string },
    ]);
    const { problems, estimate } = await planOf({ 'algorithm.adv_estimator': 'gae' });
    expect(estimate).toBeNull();
    expect(problems).toEqual([
      {
        key: 'algorithm.adv_estimator',
        message:
          'config: algorithm.adv_estimator is gae, which the engine gpu does not support: choose an estimator without a critic, such as grpo',
      },
    ]);
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
