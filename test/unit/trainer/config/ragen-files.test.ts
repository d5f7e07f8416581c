// RAGEN's own files load unchanged, by path and as a workspace's config/, and resolve to the same values as the presets
// with the same names. ragen-files.runs.test.ts runs one step of each.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { flat, load, presetFolder, problemsOf } from './presets';
import { ragenFolder, ragenNames } from './ragen-files';

let workspace: string;
beforeAll(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-files-'));
  cpSync(ragenFolder, join(workspace, 'config'), { recursive: true });
});
afterAll(() => rmSync(workspace, { recursive: true }));

const presetFolders = () => [join(workspace, 'config'), presetFolder];
const own = (configName: string, ...overrides: string[]) =>
  loadConfig({ configName, overrides, presetFolders: presetFolders(), workspace });
const byPath = (name: string, ...overrides: string[]) =>
  loadConfig({
    configFile: join(ragenFolder, `${name}.yaml`),
    overrides,
    presetFolders: [presetFolder],
    workspace: tmpdir(),
  });
const write = (name: string, text: string) => writeFileSync(join(workspace, 'config', `${name}.yaml`), text);

test('all files of the folder exist', () => {
  expect(ragenNames).toHaveLength(19);
});

test.each(ragenNames)("%s loads by its path and from a workspace's config folder, with the same result", name => {
  const { config, hash } = byPath(name, 'model_path=ragen-tiny');
  expect(own(name, 'model_path=ragen-tiny').hash).toBe(hash);
  expect(config.actor_rollout_ref.model.path).toBe('ragen-tiny');
});

/** Differences between RAGEN's files and the presets with the same names, except names and instructions. */
const differences: Record<string, Record<string, unknown>> = {
  _6_webshop: { log_prob_micro_batch_size_per_gpu: 4 }, // base takes it from micro_batch_size_per_gpu
  webshop_full: { log_prob_micro_batch_size_per_gpu: 4 },
  _9_search: { log_prob_micro_batch_size_per_gpu: 4 },
  eval: {
    'actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu': 64,
    'output.filename': 'val_rollouts.pkl',
    'output.format': 'pkl',
  },
};
const everywhere = { 'trainer.logger': ['console', 'wandb'], 'agent_proxy.batch_adjust_mode': 'copy' };
const copies = /^actor_rollout_ref\.(ref|rollout)\.log_prob_micro_batch_size_per_gpu$/;
const worded = /^trainer\.experiment_name$|\.env_instruction$|^model_info\.|\.env_config\.(dim_\w+|render_mode)$/;

test.each(ragenNames.filter(name => name !== 'envs' && name !== 'eval_webshop'))(
  '%s equals the preset of the same name',
  name => {
    const ours = flat(load(name).config);
    const theirs = flat(byPath(name).config);
    const expected = { ...everywhere, ...differences[name] };
    const differing = Object.keys({ ...ours, ...theirs }).filter(
      key =>
        !worded.test(key) &&
        (key in expected || !copies.test(key)) &&
        JSON.stringify(ours[key]) !== JSON.stringify(theirs[key]),
    );
    expect(Object.fromEntries(differing.map(key => [key, theirs[key]]))).toEqual(expected);
  },
);

test('a file with environments only is merged over base', () => {
  const { config, sources } = own('envs');
  expect(sources.map(file => file.slice(workspace.length + 1))).toEqual(
    expect.arrayContaining(['config/envs.yaml', 'config/base.yaml']),
  );
  expect(config.es_manager.train.env_configs.tags).toEqual(['CoordSokoban']);
});

test('an evaluation may have 0 training steps, and use_critic has no effect', () => {
  const { config, notes } = own('eval_webshop');
  expect(config.trainer).toMatchObject({ val_only: true, total_training_steps: 0 });
  expect(notes).toContain(
    'config: use_critic has no effect here: it configures nothing in RAGEN either, because algorithm.adv_estimator determines whether there is a critic',
  );
  expect(problemsOf(() => own('eval_webshop', 'trainer.val_only=false')).map(({ message }) => message)).toEqual([
    'config: trainer.total_training_steps is 0, but val_only is false: use 1 or more, or set trainer.val_only to true for an evaluation',
  ]);
});

describe('a number as a name', () => {
  test.each([
    ['2048', '2048'],
    ['1e3', '1e3'],
    ['007', '007'],
    ['1.0', '1.0'],
  ])('%s stays as written', (written, name) => {
    write('numbered', `defaults: [base]\ntrainer: {experiment_name: ${written}, project_name: ${written}}`);
    expect(own('numbered').config.trainer).toMatchObject({ experiment_name: name, project_name: name });
    expect(own('base', `trainer.experiment_name=${written}`).config.trainer.experiment_name).toBe(name);
  });

  test('is an error for other keys', () => {
    expect(() => own('base', 'model_path=7')).toThrow(/^config: model_path is 7: use a text/);
    expect(() => own('base', 'trainer.experiment_name=true')).toThrow(/experiment_name is true: use a text/);
  });
});

describe('ppo_trainer', () => {
  test('has a value for every key', () => {
    write('bare', 'defaults: [ppo_trainer, envs]');
    expect(Object.keys(flat(own('bare').config)).filter(key => !key.startsWith('custom_envs.'))).toEqual(
      expect.arrayContaining(Object.keys(flat(load('base').config)).filter(key => !key.startsWith('custom_envs.'))),
    );
  });

  test("has verl's losses where RAGEN's base has different ones", () => {
    write('bare', 'defaults: [ppo_trainer, envs]');
    expect(flat(own('bare').config)).toMatchObject({
      'actor_rollout_ref.actor.clip_ratio_high': 0.2,
      'actor_rollout_ref.actor.entropy_coeff': 0,
      'actor_rollout_ref.actor.kl_loss_type': 'low_var_kl',
      'algorithm.kl_ctrl.kl_coef': 0.001,
    });
  });

  test('is the preset, even when a file of that name is beside the configuration', () => {
    write('ppo_trainer', 'defaults:\n  - actor@actor_rollout_ref.actor: dp_actor\nactor_rollout_ref: {hybrid: 1}');
    const { hash, sources } = own('base', 'model_path=ragen-tiny');
    rmSync(join(workspace, 'config/ppo_trainer.yaml'));
    expect(own('base', 'model_path=ragen-tiny').hash).toBe(hash);
    expect(sources).toContain(join(presetFolder, 'ppo_trainer.yaml'));
  });

  test('is overridden by a file that lists it last', () => {
    write('late', 'defaults: [base, ppo_trainer, _self_]\nalgorithm: {lam: 0.5}');
    expect(own('late').config.actor_rollout_ref.actor.clip_ratio_high).toBe(0.2);
    expect(own('late').config.algorithm.lam).toBe(0.5);
  });
});

describe("RAGEN's command-line overrides for an evaluation", () => {
  const quick = ['es_manager.val.env_groups=32', 'es_manager.val.group_size=1'];
  const selected = (name: string, groups: string) => [
    name,
    'model_path=Qwen/Qwen2.5-3B-Instruct',
    'trainer.experiment_name=some',
    'trainer.local_log_dir=results/eval_multi',
    "system.CUDA_VISIBLE_DEVICES='0,1'",
    ...quick,
    `es_manager.val.env_configs.n_groups=${groups}`,
  ];
  const qwen = (version: string, groups: number) => [
    'eval',
    'system.CUDA_VISIBLE_DEVICES=0,1',
    `model_path=Qwen/Qwen2.5-${version}-Instruct`,
    `es_manager.val.env_groups=${groups}`,
    'es_manager.val.group_size=16',
    'es_manager.val.env_configs.tags=[CoordSokoban]',
    `es_manager.val.env_configs.n_groups=[${groups}]`,
    'output.dir=outputs',
    `output.filename=qwen-${version}-sokoban-${groups * 16}.jsonl`,
    'output.format=jsonl',
    'output.append_timestamp=false',
  ];
  const server = [
    'eval',
    'system.CUDA_VISIBLE_DEVICES=0',
    'model_path=Qwen/Qwen2.5-3B-Instruct',
    'actor_rollout_ref.rollout.tensor_model_parallel_size=1',
    'actor_rollout_ref.rollout.gpu_memory_utilization=0.9',
    'actor_rollout_ref.rollout.max_model_len=3600',
    'actor_rollout_ref.rollout.max_num_batched_tokens=8192',
    'actor_rollout_ref.rollout.response_length=400',
    'actor_rollout_ref.rollout.val_kwargs.do_sample=True',
    'actor_rollout_ref.rollout.val_kwargs.temperature=0.5',
    'output.dir=results/eval',
    'output.filename=a.jsonl',
    'output.format=jsonl',
    'output.append_timestamp=false',
    'output.save_pkl_backup=False',
    'output.save_jsonl_backup=False',
    'output.keep_batch_keys=[rm_scores,responses]',
    'output.keep_non_tensor_keys=[history,metrics]',
    'output.keep_meta_info=True',
  ];
  const lines: string[][] = [
    selected('_2_sokoban', '[32]'),
    selected('_3_frozen_lake', '[32]'),
    selected('_10_deepcoder', '[32]'),
    selected('_1_bandit', '[16,16]'),
    selected('_4_countdown', '[32]'),
    selected('_5_metamathqa', '[32]'),
    qwen('3B', 8),
    qwen('14B', 16),
    server,
  ];

  test.each(lines)("%s is accepted, with RAGEN's files and with the presets", (name, ...overrides) => {
    for (const { config } of [own(name, ...overrides), load(name, ...overrides)])
      expect(config.model_path).toMatch(/^Qwen/);
  });

  test('report where the trajectories are written', () => {
    const [name, ...overrides] = qwen('3B', 8);
    expect(own(name, ...overrides).config.output).toEqual({
      dir: 'outputs',
      filename: 'qwen-3B-sokoban-128.jsonl',
      format: 'jsonl',
      append_timestamp: false,
    });
  });

  const only = 'trainer.val_only=true';
  const aboutPkl = (...overrides: string[]) => own('eval', ...overrides).notes.filter(note => note.includes('pkl'));

  test.each([
    [[], 'output.format is pkl', 'val_rollouts.jsonl'],
    [['output.filename=mine.pkl'], 'output.format is pkl', 'mine.jsonl'],
    [['output.format=jsonl', 'output.filename=mine.pkl'], 'output.filename is mine.pkl', 'mine.jsonl'],
  ])('note that a requested pickle (%j) becomes JSON lines', (overrides, asked, file) => {
    const sentence = `config: ${asked}, but pickle files are not supported, so trajectories are written as JSON lines to ${file}`;
    expect(aboutPkl(only, ...overrides)).toContain(sentence);
  });

  test('add no note if no file is requested, nor in a training run, which writes no trajectories', () => {
    const mentions = (...overrides: string[]) => aboutPkl(...overrides).filter(note => /Python/.test(note));
    expect(mentions(only, 'output.format=jsonl', 'output.filename=a.jsonl')).toEqual([]);
    expect(mentions()).toEqual([]);
    expect(load('eval', only).notes).toEqual([]);
  });

  test('refuse an unknown format', () => {
    expect(() => own('eval', 'output.format=parquet')).toThrow(
      /^config: output\.format is "parquet": use one of jsonl, pkl/,
    );
  });
});
