// Composition, overrides, interpolation and presets.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig, presets } from '../../../../extension/trainer/config/load-config';
import type { LoadedConfig } from '../../../../extension/trainer/config/loaded-config';
import { modelSource } from '../../../../extension/trainer/config/model-path';
import { load, messages, presetFolder, problemsOf, repository } from './presets';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const loadFile = (text: string, ...overrides: string[]): LoadedConfig =>
  loadConfig({ configFile: write('run.yaml', text), overrides, presetFolders: [presetFolder], workspace: folder });

describe('presets', () => {
  test('each listed preset loads and has a description', () => {
    const listed = presets([presetFolder]);
    const names = listed.map(preset => preset.name);
    expect(names).toEqual([...names].sort());
    expect(names).toEqual(expect.arrayContaining(['_1_bandit', '_10_rubikscube', 'base', 'quickstart', 'stream']));
    expect(names).not.toContain('envs'); // other presets include it
    for (const { name, description } of listed) {
      expect(description).toMatch(/^\S.*\.$/);
      expect(load(name).notes).toEqual([]);
    }
  });

  test("base has RAGEN's defaults", () => {
    const { config } = load('base');
    expect(config.seed).toEqual({ train: 10000, val: 123 });
    expect(config.actor_rollout_ref.actor).toMatchObject({
      ppo_mini_batch_size: 32,
      clip_ratio_low: 0.2,
      clip_ratio_high: 0.28,
    });
    expect(config.actor_rollout_ref.actor.optim.lr).toBe(1e-6);
    expect(config.critic.optim).toMatchObject({ lr: 1e-5, total_training_steps: 200 });
    expect(config.es_manager.val).toMatchObject({ env_groups: 512, group_size: 1 });
    expect(config.algorithm).toMatchObject({ adv_estimator: 'gae', high_level_gamma: 0.95 });
  });

  test("the other presets differ from base in the same keys as RAGEN's", () => {
    expect(load('_1_bandit').config.es_manager.val.env_configs).toEqual({
      tags: ['Bandit', 'BanditTest'],
      n_groups: [256, 256],
    });
    expect(load('_1_bandit').config.actor_rollout_ref.rollout.response_length).toBe(500);
    expect(load('_2_sokoban').config).toEqual({
      ...load('base').config,
      trainer: { ...load('base').config.trainer, experiment_name: 'sokoban' },
    });
    expect(load('_3_frozen_lake').config.custom_envs.CoordFrozenLake.env_config).toEqual({
      success_rate: 1,
      observation_format: 'grid_coord',
    });
    expect(load('_3_frozen_lake').config.custom_envs.FrozenLake.env_config).toEqual({ success_rate: 0.8 });
  });
});

describe('defaults', () => {
  test('later entries win, and the file itself comes last', () => {
    write('a.yaml', 'trainer: {test_freq: 1, save_freq: 1}');
    write('b.yaml', 'trainer: {test_freq: 2}');
    const { config, sources } = loadFile('defaults: [base, a, b]\ntrainer: {experiment_name: mine}');
    expect(config.trainer).toMatchObject({
      test_freq: 2,
      save_freq: 1,
      experiment_name: 'mine',
      total_training_steps: 200,
    });
    expect(sources).toEqual([
      join(folder, 'run.yaml'),
      ...['base', 'ppo_trainer', 'envs'].map(n => join(presetFolder, `${n}.yaml`)),
      join(folder, 'a.yaml'),
      join(folder, 'b.yaml'),
    ]);
  });

  test('_self_ marks the position of the file', () => {
    write('a.yaml', 'trainer: {test_freq: 1}');
    expect(loadFile('defaults: [base, _self_, a]\ntrainer: {test_freq: 9}').config.trainer.test_freq).toBe(1);
    expect(loadFile('defaults: [base, a, _self_]\ntrainer: {test_freq: 9}').config.trainer.test_freq).toBe(9);
  });

  test('lists are replaced, maps are merged', () => {
    const { config } = loadFile('defaults: [base]\nes_manager: {train: {env_configs: {tags: [Bandit]}}}');
    expect(config.es_manager.train.env_configs).toEqual({ tags: ['Bandit'], n_groups: [8] });
  });

  test("verl's ppo_trainer below base changes nothing", () => {
    expect(loadFile('defaults: [ppo_trainer, base]').config).toEqual(load('base').config);
  });

  test('errors explain cycles, unknown names and files without defaults', () => {
    write('a.yaml', 'defaults: [b]');
    write('b.yaml', 'defaults: [a]');
    expect(problemsOf(() => loadFile('defaults: [a]')).map(p => p.message)).toEqual([
      'config: a.yaml includes itself through the defaults lists: remove one of the entries that form this cycle',
    ]);
    expect(problemsOf(() => loadFile('defaults:\n  - bse'))).toEqual([
      {
        key: 'defaults',
        message: 'config: there is no configuration "bse": did you mean base?',
        file: join(folder, 'run.yaml'),
        line: 2,
        column: 5,
      },
    ]);
    expect(problemsOf(() => loadFile('seed: {train: 1}')).map(p => p.message)).toEqual([
      expect.stringMatching(
        /^config: there is no defaults list, so \d+ keys are missing: put defaults: \[base, _self_\] at the top$/,
      ),
    ]);
  });

  test('YAML anchors and merge keys work', () => {
    const { config } = loadFile(
      'defaults: [base]\ncustom_envs:\n  A: &a {env_type: bandit, max_actions_per_traj: 1}\n  B: {<<: *a, max_tokens: 5}',
    );
    expect(config.custom_envs.B).toMatchObject({ env_type: 'bandit', max_actions_per_traj: 1, max_tokens: 5 });
  });
});

describe('overrides', () => {
  test('values have the types of YAML', () => {
    const { config } = load(
      'quickstart',
      'actor_rollout_ref.actor.optim.lr=1e-5',
      'trainer.val_before_train=False',
      'es_manager.train.env_configs.tags=[QuickFrozenLake,"FrozenLake"]',
      'es_manager.train.env_configs.n_groups=[12,4]',
      'agent_proxy.action_sep=||',
      'trainer.experiment_name="0.5"',
      'collapse_detection.num_samples=null',
      'algorithm.kl_ctrl={kl_coef:0.5, type: fixed, horizon:1, target_kl: 1}',
    );
    expect(config.actor_rollout_ref.actor.optim.lr).toBe(1e-5);
    expect(config.trainer.val_before_train).toBe(false);
    expect(config.es_manager.train.env_configs).toEqual({ tags: ['QuickFrozenLake', 'FrozenLake'], n_groups: [12, 4] });
    expect(config.agent_proxy.action_sep).toBe('||');
    expect(config.trainer.experiment_name).toBe('0.5');
    expect(config.collapse_detection.num_samples).toBeNull();
    expect(config.algorithm.kl_ctrl).toEqual({ kl_coef: 0.5, type: 'fixed', horizon: 1, target_kl: 1 });
  });

  test('+ adds, ++ adds or changes, ~ deletes', () => {
    const { config } = load(
      'quickstart',
      '+custom_envs.Mine.env_type=envs/mine/index.ts',
      '+custom_envs.Mine.max_actions_per_traj=3',
      '++custom_envs.QuickFrozenLake.env_config.size=6',
      '++custom_envs.QuickFrozenLake.env_config.map_seed=6',
      '~custom_envs.Bandit',
    );
    expect(config.custom_envs.Mine).toMatchObject({ env_type: 'envs/mine/index.ts', max_workers: 1, env_config: null });
    expect(config.custom_envs.QuickFrozenLake.env_config).toMatchObject({ size: 6, map_seed: 6, success_rate: 1 });
    expect(config.custom_envs.Bandit).toBeUndefined();
  });

  test('an override reaches every value that refers to it', () => {
    const { config } = load('quickstart', 'ppo_mini_batch_size=64', 'trainer.total_training_steps=7');
    expect(config.actor_rollout_ref.actor.ppo_mini_batch_size).toBe(64);
    expect(config.critic.ppo_mini_batch_size).toBe(64);
    expect(config.actor_rollout_ref.actor.optim.total_training_steps).toBe(7);
  });

  test('an error names the override', () => {
    expect(problemsOf(() => load('base', 'trainer.test_frq=3'))).toEqual([
      {
        key: 'trainer.test_frq',
        message: 'config: trainer.test_frq is not in the configuration: did you mean test_freq?',
        override: 'trainer.test_frq=3',
      },
    ]);
    expect(messages('base', 'actor_rollout_ref.rollout_filter_value=1')).toEqual([
      'config: actor_rollout_ref.rollout_filter_value is not in the configuration: did you mean actor_rollout_ref.rollout.rollout_filter_value?',
    ]);
    expect(
      messages(
        'base',
        'custom_envs.CoordSokoban.env_config.mapp=1',
        '+seed.train=1',
        '~seed.test',
        'seed.train',
        '=3',
        'seed.train.x=1',
      ),
    ).toEqual([
      'config: custom_envs.CoordSokoban.env_config.mapp is not in the configuration: put a + before the override to add the key: +custom_envs.CoordSokoban.env_config.mapp=…',
      'config: seed.train already exists: remove the + from the override',
      'config: seed.test does not exist, so it cannot be removed: leave out the override with ~',
      'config: the override of seed.train has no value: write seed.train=value',
      'config: the override has no valid key: write it like trainer.test_freq=10',
      'config: seed.train.x is not in the configuration: remove it',
    ]);
    expect(messages('base', '+seed.train.x=1')).toEqual([
      'config: seed.train.x cannot be set, because a key above it holds a single value or a list: override that key as a whole',
    ]);
  });
});

describe('interpolation', () => {
  test('a reference that is the whole value keeps its type; inside text it is inserted', () => {
    const { config } = load(
      'base',
      'trainer.project_name=p-${seed.val}-${trainer.test_freq}',
      'seed.train=${seed.val}',
    );
    expect(config.trainer.project_name).toBe('p-123-10');
    expect(config.seed.train).toBe(123);
  });

  test('cycles and unknown keys are reported', () => {
    expect(messages('base', 'seed.val=${seed.train}', 'seed.train=${seed.val}')[0]).toMatch(/is a circular reference/);
    expect(messages('base', 'seed.val=${seed.nope}')).toEqual([
      'config: seed.val refers to ${seed.nope}, which does not exist: correct the key',
    ]);
    expect(messages('base', 'model_path=${oc.env:HOME}')[0]).toMatch(/which is not a key/);
  });

  test('the size of resolved references is limited', () => {
    const doubling = Array.from({ length: 40 }, (_, i) => `k${i}: ["\${x.k${i + 1}}", "\${x.k${i + 1}}"]`).join('\n  ');
    const problems = problemsOf(() => loadFile(`defaults: [base]\nx:\n  ${doubling}\n  k40: 1`));
    const large = problems.filter(({ message }) =>
      message.endsWith('expands to a value that is too large: replace the reference by a shorter value'),
    );
    expect(large.map(({ key }) => key)).toEqual(['x.k23[0]', 'x.k23[1]', 'x.k7[0]', 'x.k7[1]']); // 2 ** 16 values at most
  });
});

describe('hash', () => {
  test('depends on the values, not on their notation', () => {
    expect(loadFile('defaults: [base]\ntrainer:\n  test_freq: 3\n  save_freq: 4').hash).toBe(
      load('base', 'trainer.save_freq=4', 'trainer.test_freq=3').hash,
    );
    expect(load('base').hash).not.toBe(load('base', 'seed.train=1').hash);
  });

  test('ignores keys without effect, which are reported in notes', () => {
    const { hash, notes } = load(
      'base',
      'trainer.n_gpus_per_node=8',
      'actor_rollout_ref.rollout.gpu_memory_utilization=0.3',
      'trainer.logger=[console]',
    );
    expect(hash).toBe(load('base').hash);
    expect(notes).toEqual([
      'config: actor_rollout_ref.rollout.gpu_memory_utilization has no effect here: it configures the GPU memory of vLLM',
      'config: trainer.n_gpus_per_node has no effect here: it configures GPU placement',
    ]);
    expect(load('base', 'trainer.logger=[console,wandb]').notes[0]).toMatch(/names wandb/);
    expect(
      load('quickstart', 'actor_rollout_ref.model.path=models/other', 'critic.model.path=models/third').notes,
    ).toEqual([
      'config: actor_rollout_ref.model.path differs from model_path and has no effect, because policy and critic both start from model_path ("ragen-tiny"): change model_path instead',
      'config: critic.model.path differs from model_path and has no effect, because policy and critic both start from model_path ("ragen-tiny"): change model_path instead',
    ]);
    expect(load('quickstart', 'model_path=models/other').notes).toEqual([]);
  });

  test('says why a selection by environment has no effect', () => {
    const notes = (...overrides: string[]) => load('quickstart-mixture', ...overrides).notes;
    const one = ['es_manager.train.env_configs.tags=[SmallBandit]', 'es_manager.train.env_configs.n_groups=[36]'];
    const all = ['value=1', 'strategy=top_p', 'include_zero=true'].map(
      setting => `actor_rollout_ref.rollout.rollout_filter_${setting}`,
    );
    const because = 'config: workbench.filter_by_tag is true, but has no effect, because';
    expect(notes()).toEqual([]);
    expect(notes(...one)).toEqual([`${because} SmallBandit is the only environment that is trained`]);
    expect(notes(...all)).toEqual([
      `${because} the rollout filter keeps all groups (rollout_filter_value 1, rollout_filter_include_zero true)`,
    ]);
    expect(notes(...all, 'workbench.filter_by_tag=false')).toEqual([]);
    expect(notes(...one, 'trainer.val_only=true')).toEqual([]);
  });
});

test('model_path accepts a bundled model, a folder or a Hub model', () => {
  const models = join(repository, 'test', 'unit');
  const where = { workspace: folder, modelFolders: [folder] };
  write('config.json', '{}');
  expect(modelSource('.', where)).toEqual({ folder });
  expect(modelSource(folder, where)).toEqual({ folder });
  expect(modelSource(basename(folder), { workspace: models, modelFolders: [tmpdir()] })).toEqual({ folder });
  const hub = (repo: string, revision: string) => ({ hub: { repo, revision } });
  expect(modelSource('Qwen/Qwen2.5-3B-Instruct', where)).toEqual(hub('Qwen/Qwen2.5-3B-Instruct', 'main'));
  expect(modelSource('Qwen/Qwen2.5-3B-Instruct@refs/pr/3', where)).toEqual(
    hub('Qwen/Qwen2.5-3B-Instruct', 'refs/pr/3'),
  );
  const problem = (path: string): string => problemsOf(() => modelSource(path, where))[0].message;
  for (const path of ['none', './models/none', '/models/none', 'a/b/c', 'a/../b', 'a/b@', 'C:\\models\\none'])
    expect(problem(path)).toMatch(/^config: model_path is ".*", but there is no config.json in .*: give a folder/);
  // a mistyped path causes no network request
  mkdirSync(join(folder, 'models/other'), { recursive: true });
  write('models/other/config.json', '{}');
  expect(problem('models/none')).toMatch(/, or models\/none@main for the Hugging Face model of that name$/);
  expect(modelSource('models/none@main', where)).toEqual(hub('models/none', 'main'));
  expect(modelSource('models/other', where)).toEqual({ folder: join(folder, 'models/other') });
});
