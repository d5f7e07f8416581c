// Values of RAGEN's shipped configurations (its config/*.yaml), the tags of its envs.yaml, and the command-line
// overrides of its published scripts. ragen-configurations.runs.test.ts tests runs of them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunConfig } from '../../../../extension/trainer/config/schema';
import { environmentSpecs } from '../../../../extension/environments/client/environment-specs';
import { beyondBase, flat, load, repository } from './presets';

const tags = (tag: string) => ({
  'es_manager.train.env_configs.tags': [tag],
  'es_manager.val.env_configs.tags': [tag],
});
const turns = (max_turn: number, actions: number) => ({
  'agent_proxy.max_turn': max_turn,
  ...(actions !== 2 && { 'agent_proxy.max_actions_per_turn': actions }),
});
const lengths = (max_model_len: number, response_length?: number) => ({
  'actor_rollout_ref.rollout.max_model_len': max_model_len,
  ...(response_length !== undefined && { 'actor_rollout_ref.rollout.response_length': response_length }),
});
const micro4 = {
  micro_batch_size_per_gpu: 4,
  'actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu': 4,
  'critic.ppo_micro_batch_size_per_gpu': 4,
};
const window5 = { 'agent_proxy.max_context_window': 5 };

const differences: Record<string, Record<string, unknown>> = {
  _1_bandit: {
    'actor_rollout_ref.rollout.response_length': 500,
    ...turns(1, 1),
    'es_manager.train.env_configs.tags': ['Bandit'],
    'es_manager.val.env_configs.tags': ['Bandit', 'BanditTest'],
    'es_manager.val.env_configs.n_groups': [256, 256],
  },
  _2_sokoban: {},
  _3_frozen_lake: { ...tags('CoordFrozenLake'), 'custom_envs.CoordFrozenLake.env_config.success_rate': 1 },
  _4_countdown: { ...tags('Countdown'), ...turns(1, 1) },
  _5_metamathqa: tags('MetamathQA'),
  _6_webshop: { ...tags('WebShop'), ...micro4, ...turns(9, 1), ...lengths(15000) },
  webshop_full: { ...tags('WebShopFull'), ...micro4, ...turns(15, 1), ...lengths(15000) },
  _7_lean: { ...tags('Lean'), ...turns(15, 4), ...window5, ...lengths(8096, 512) },
  _8_sudoku: {
    ...tags('SimpleSudoku'),
    'es_manager.val.env_groups': 32,
    'es_manager.val.group_size': 16,
    'es_manager.val.env_configs.n_groups': [32],
  },
  _9_2048: { ...tags('game_2048'), ...turns(800, 1), ...window5, ...lengths(8192, 256) },
  _9_search: {
    ...tags('SearchQA'),
    ...micro4,
    'agent_proxy.max_actions_per_turn': 1,
    ...lengths(5000),
    'es_manager.train.env_groups': 16,
    'es_manager.train.group_size': 8,
    'es_manager.train.env_configs.n_groups': [16],
    'es_manager.val.env_groups': 256,
    'es_manager.val.env_configs.n_groups': [256],
  },
  _10_deepcoder: { ...tags('DeepCoder'), ...turns(1, 1) },
  _10_rubikscube: {
    ...tags('rubikscube'),
    ...turns(25, 4),
    ...window5,
    'actor_rollout_ref.rollout.response_length': 500,
  },
  stream: {
    'es_manager.val.env_groups': 1,
    'es_manager.val.env_configs.tags': ['SimpleSokoban'],
    'es_manager.val.env_configs.n_groups': [1],
  },
};

test.each(Object.entries(differences))('%s differs from base as in RAGEN', (name, difference) => {
  expect(beyondBase(name)).toEqual(difference);
  expect(load(name).notes).toEqual([]);
});

test("base has RAGEN's values", () => {
  expect(flat(load('base').config)).toMatchObject({
    'seed.train': 10000,
    'seed.val': 123,
    micro_batch_size_per_gpu: 1,
    ppo_mini_batch_size: 32,
    model_path: 'Qwen/Qwen2.5-3B-Instruct',
    enable_response_mask: true,
    'actor_rollout_ref.actor.optim.lr': 1e-6,
    'critic.optim.lr': 1e-5,
    'actor_rollout_ref.actor.clip_ratio_low': 0.2,
    'actor_rollout_ref.actor.clip_ratio_high': 0.28,
    'actor_rollout_ref.actor.entropy_coeff': 0.001,
    'actor_rollout_ref.actor.use_kl_loss': false,
    'actor_rollout_ref.actor.kl_loss_coef': 0,
    'actor_rollout_ref.actor.kl_loss_type': 'kl',
    'actor_rollout_ref.actor.loss_agg_mode': 'token-mean',
    'actor_rollout_ref.actor.filter_loss_scaling': 'none',
    'actor_rollout_ref.rollout.max_model_len': 3600,
    'actor_rollout_ref.rollout.response_length': 400,
    'actor_rollout_ref.rollout.temperature': 1,
    'actor_rollout_ref.rollout.val_kwargs.temperature': 0.5,
    'actor_rollout_ref.rollout.rollout_filter_value': 1,
    'actor_rollout_ref.rollout.rollout_filter_strategy': 'top_p',
    'actor_rollout_ref.rollout.rollout_filter_type': 'largest',
    'actor_rollout_ref.rollout.rollout_filter_metric': 'reward_variance',
    'actor_rollout_ref.rollout.rollout_filter_include_zero': true,
    'actor_rollout_ref.rollout.rollout_filter_top_p_prob_mode': 'linear',
    'actor_rollout_ref.rollout.rollout_filter_selection_eps': 0.01,
    'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps': 5,
    'algorithm.adv_estimator': 'gae',
    'algorithm.gamma': 1,
    'algorithm.lam': 1,
    'algorithm.high_level_gamma': 0.95,
    'algorithm.kl_ctrl.type': 'fixed',
    'algorithm.kl_ctrl.kl_coef': 0,
    'trainer.total_training_steps': 200,
    'trainer.test_freq': 10,
    'trainer.save_freq': 100,
    'trainer.val_before_train': true,
    'trainer.validation_steps': 1,
    'trainer.max_actor_ckpt_to_keep': 1,
    'trainer.project_name': 'ragen',
    'trainer.local_log_dir': 'results/',
    'trainer.gradient_analysis_mode': false,
    'agent_proxy.max_turn': 5,
    'agent_proxy.max_actions_per_turn': 2,
    'agent_proxy.context_window_mode': 'full',
    'agent_proxy.max_context_window': -1,
    'agent_proxy.batch_adjust_mode': 'weights', // RAGEN copies samples; weights are exact (docs/ARCHITECTURE.md)
    'es_manager.format_penalty': -0.1,
    'es_manager.train.env_groups': 8,
    'es_manager.train.group_size': 16,
    'es_manager.train.env_configs.tags': ['CoordSokoban'],
    'es_manager.val.env_groups': 512,
    'es_manager.val.group_size': 1,
    'collapse_detection.compute_freq': 5,
    'collapse_detection.micro_batch_size': 128,
    'collapse_detection.num_samples': 64,
  });
});

describe("tags of RAGEN's envs.yaml", () => {
  const { custom_envs } = load('base').config;
  type Row = [tag: string, env_type: string, actions: number, hint: number, parallel: boolean, workers: number];
  const rows: Row[] = [
    ['SimpleSokoban', 'sokoban', 10, 100, false, 32],
    ['LargerSokoban', 'sokoban', 10, 100, false, 32],
    ['SokobanDifferentGridVocab', 'sokoban', 10, 100, false, 32],
    ['CoordSokoban', 'sokoban', 10, 120, false, 32],
    ['VisualSimpleSokoban', 'sokoban', 10, 100, false, 32],
    ['FrozenLake', 'frozen_lake', 10, 100, false, 32],
    ['CoordFrozenLake', 'frozen_lake', 10, 120, false, 32],
    ['Bandit', 'bandit', 1, 100, false, 32],
    ['BanditTest', 'bandit', 1, 100, false, 32],
    ['Countdown', 'countdown', 1, 100, false, 32],
    ['MetamathQA', 'metamathqa', 1, 100, false, 1],
    ['WebShop', 'webshop', 9, 200, false, 1],
    ['WebShopFull', 'webshop', 15, 200, false, 1],
    ['Lean', 'lean', 30, 512, true, 32],
    ['SimpleSudoku', 'sudoku', 20, 150, false, 32],
    ['MediumSudoku', 'sudoku', 30, 150, false, 32],
    ['SearchQA', 'search', 10, 300, true, 32],
    ['SearchQAMock', 'search', 10, 300, true, 32],
    ['DeepCoder', 'deepcoder', 1, 8000, true, 32],
    ['game_2048', 'game_2048', 700, 8192, false, 1],
    ['rubikscube', 'rubikscube', 20, 96, false, 1],
    ['Alfworld', 'alfworld', 50, 512, false, 1],
    ['AlfworldOOD', 'alfworld', 50, 512, false, 1],
  ];

  test('all exist', () => {
    expect(Object.keys(custom_envs)).toEqual(expect.arrayContaining(rows.map(([tag]) => tag)));
  });

  test.each(rows)(
    '%s has the values of RAGEN',
    (tag, env_type, max_actions_per_traj, max_tokens, parallel_friendly, max_workers) => {
      expect(custom_envs[tag]).toMatchObject({ env_type, max_actions_per_traj, max_tokens });
      expect(custom_envs[tag]).toMatchObject({ parallel_friendly, max_workers });
    },
  );

  let builtIn: string;
  beforeAll(() => {
    builtIn = mkdtempSync(join(tmpdir(), 'ragen-registry-'));
    writeFileSync(join(builtIn, 'registry.json'), '{"bandit":"bandit.ts"}');
    writeFileSync(join(builtIn, 'bandit.ts'), '');
  });
  afterAll(() => rmSync(builtIn, { recursive: true }));

  test('a tag whose environment is missing in this version is refused with that reason', () => {
    expect(environmentSpecs(['Bandit'], custom_envs, builtIn, repository)).toHaveLength(1);
    expect(() => environmentSpecs(['Alfworld'], custom_envs, builtIn, repository)).toThrow(
      'config: custom_envs.Alfworld.env_type is alfworld, an environment of RAGEN that is not available in this version: use one of bandit or your own TypeScript file',
    );
  });

  test('a mistyped tag is reported as unknown', () => {
    const mistaken: RunConfig['custom_envs'] = { X: { ...custom_envs.Bandit, env_type: 'bandits' } };
    expect(() => environmentSpecs(['X'], mistaken, builtIn, repository)).toThrow(
      /^config: custom_envs\.X\.env_type is bandits, which is neither a built-in environment \(.*\) nor a file: set it to the name of a built-in environment or the path of a file$/,
    );
  });
});

describe("command-line overrides of RAGEN's published scripts", () => {
  const machine = [
    'trainer.default_local_dir="model_saving/x"',
    "trainer.logger=['console','wandb']",
    'trainer.n_gpus_per_node=1',
    'ray_kwargs.ray_init.num_cpus=16',
    "system.CUDA_VISIBLE_DEVICES='0'",
    'actor_rollout_ref.rollout.gpu_memory_utilization=0.3',
    'actor_rollout_ref.actor.entropy_from_logits_with_chunking=True',
    'actor_rollout_ref.actor.checkpoint.save_contents=[model]',
    'critic.checkpoint.save_contents=[model]',
  ];
  const course = ['trainer.project_name=p', 'trainer.total_training_steps=400', 'trainer.save_freq=-1'];
  const filter = [
    'actor_rollout_ref.rollout.rollout_filter_strategy=top_p',
    'actor_rollout_ref.rollout.rollout_filter_top_p_prob_mode=softmax',
    'actor_rollout_ref.rollout.rollout_filter_value=1',
    'actor_rollout_ref.rollout.rollout_filter_type=largest',
    'actor_rollout_ref.rollout.rollout_filter_metric=reward_variance',
    'actor_rollout_ref.rollout.rollout_filter_include_zero=True',
  ];
  const kl = [
    'actor_rollout_ref.actor.use_kl_loss=True',
    'actor_rollout_ref.actor.kl_loss_type=low-var-kl',
    'actor_rollout_ref.actor.kl_loss_coef=0.001',
  ];

  test('are listed once, with the reason, if they control another machine', () => {
    const { config, notes } = load('_2_sokoban', ...machine, ...course, ...filter, ...kl);
    expect(config.actor_rollout_ref.actor).toMatchObject({ use_kl_loss: true, kl_loss_type: 'low_var_kl' });
    expect(new Set(notes).size).toBe(notes.length);
    for (const key of [
      'trainer.default_local_dir',
      'trainer.logger',
      'trainer.n_gpus_per_node',
      'ray_kwargs',
      'system',
      'actor_rollout_ref.rollout.gpu_memory_utilization',
      'actor_rollout_ref.actor.entropy_from_logits_with_chunking',
      'actor_rollout_ref.actor.checkpoint',
      'critic.checkpoint',
    ])
      expect(notes.filter(note => note.includes(`${key} `))).toEqual([
        expect.stringMatching(/ (configures|which has no effect)/),
      ]);
  });

  test.each(['_4_countdown', '_2_sokoban', '_3_frozen_lake', '_6_webshop', '_5_metamathqa'])(
    'of the main table are accepted: %s',
    name => {
      const drGrpo = [
        'algorithm.adv_estimator=grpo',
        'algorithm.norm_adv_by_std_in_grpo=False',
        'actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum',
        'actor_rollout_ref.actor.use_kl_loss=False',
        'algorithm.use_kl_in_reward=False',
        'algorithm.kl_ctrl.kl_coef=0.0',
      ];
      expect(load(name, ...machine, ...course, ...filter, ...drGrpo).config.algorithm.adv_estimator).toBe('grpo');
    },
  );
});

test("a file with RAGEN's keys for Hydra, verl and vLLM loads, and each key is reported in a note", () => {
  const foreign = [
    'hydra={searchpath: ["pkg://verl.trainer.config"]}',
    'actor_rollout_ref.rollout.name=vllm',
    'actor_rollout_ref.rollout.load_format=auto',
    'actor_rollout_ref.rollout.tensor_model_parallel_size=1',
    'actor_rollout_ref.rollout.prompt_length=1',
    'actor_rollout_ref.rollout.max_num_batched_tokens=8192',
    'actor_rollout_ref.rollout.enforce_eager=True',
    'actor_rollout_ref.rollout.free_cache_engine=True',
    'actor_rollout_ref.rollout.dtype=bfloat16',
    'actor_rollout_ref.rollout.enable_chunked_prefill=False',
    'actor_rollout_ref.rollout.disable_log_stats=False',
    'data={max_prompt_length: null, max_response_length: null, train_batch_size: null}',
    'trainer.generations_to_log_to_wandb={val: 20}',
    'trainer.max_critic_ckpt_to_keep=1',
    'ctx_manager={generation: {gen_config: {kwargs: null}}}',
  ];
  const { hash, notes } = load('base', ...foreign);
  expect(hash).toBe(load('base').hash);
  expect(notes).toHaveLength(foreign.length + 2); // `data` yields a note for each of its three keys
});

test.each([
  ['algorithm.adv_estimator=gpg', /^config: algorithm\.adv_estimator is "gpg": use one of/],
  [
    'actor_rollout_ref.actor.kl_loss_type=full',
    /^config: actor_rollout_ref\.actor\.kl_loss_type is "full": use one of/,
  ],
  ['actor_rollout_ref.actor.optim.nesterov=true', /optim\.nesterov is not in the configuration: remove it/],
])('a key or value that would change the training is an error, not a note: %s', (override, message) => {
  expect(() => load('base', override)).toThrow(message);
});
