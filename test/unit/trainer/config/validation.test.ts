// Rejected configurations: each rule with its message and position.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../../../../extension/trainer/config/config-error';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { load, messages, presetFolder, problemsOf } from './presets';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const loadText = (text: string): unknown => {
  writeFileSync(join(folder, 'run.yaml'), text);
  return loadConfig({ configFile: 'run.yaml', overrides: [], presetFolders: [presetFolder], workspace: folder });
};

/** A selection by tag of half of the groups; of 6, 1 and 1 groups, it keeps 3, 1 and 1. */
const byCurriculum = [
  ...['workbench.filter_by_tag=true', 'workbench.curriculum={}'],
  ...['actor_rollout_ref.rollout.rollout_filter_strategy=top_k', 'actor_rollout_ref.rollout.rollout_filter_value=0.5'],
  'es_manager.train.env_configs.tags=[CoordSokoban,Bandit,CoordFrozenLake]',
  'es_manager.train.env_configs.n_groups=[3,3,2]',
];

describe('positions', () => {
  test('all problems are reported at once, each with line and column', () => {
    const text = [
      'defaults: [base]',
      'trainer:',
      '  test_frequency: 3', // 3:3, the key
      '  total_training_steps: many', // 4:25, the value
      'agent_proxy:',
      '  context_window_mode: windowed', // 6:24
      'trainerr: {}', // 7:1
    ].join('\n');
    const file = join(folder, 'run.yaml');
    const problems = problemsOf(() => loadText(text));
    expect([...problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))).toEqual([
      {
        key: 'trainer.test_frequency',
        message: 'config: trainer.test_frequency is not a known key: did you mean test_freq?',
        file,
        line: 3,
        column: 3,
      },
      {
        key: 'trainer.total_training_steps',
        message: 'config: trainer.total_training_steps is "many": use an integer ≥ 0',
        file,
        line: 4,
        column: 25,
      },
      {
        key: 'agent_proxy.context_window_mode',
        message:
          'config: agent_proxy.context_window_mode is "windowed": use one of full, limited_multi_turn, single_turn',
        file,
        line: 6,
        column: 24,
      },
      {
        key: 'trainerr',
        message: 'config: trainerr is not a known key: did you mean trainer?',
        file,
        line: 7,
        column: 1,
      },
    ]);
  });

  test('the error message contains the first problem, and the error lists all problems', () => {
    const error = (() => {
      try {
        return loadText('defaults: [base]\nseed: {train: -1, val: x}');
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      name: 'UserError',
      key: 'seed.train',
      line: 2,
      column: 15,
      file: join(folder, 'run.yaml'),
    });
    expect((error as Error).message.split('\n')).toHaveLength(2);
    expect((error as Error).message).toMatch(/^config: seed\.train is -1: use an integer ≥ 0 \(.*run\.yaml:2:15\)/);
  });

  test('a problem of a referenced value is reported where the value was written', () => {
    expect(problemsOf(() => loadText('defaults: [base]\nppo_mini_batch_size: none'))).toEqual([
      {
        key: 'ppo_mini_batch_size',
        message: 'config: ppo_mini_batch_size is "none": use an integer ≥ 1',
        file: join(folder, 'run.yaml'),
        line: 2,
        column: 22,
      },
    ]);
  });

  test('broken YAML is reported with a position', () => {
    expect(problemsOf(() => loadText('defaults: [base]\ntrainer: {a: 1, a: 2}'))[0]).toMatchObject({
      line: 2,
      message: expect.stringMatching(/not valid.*unique/),
    });
    expect(problemsOf(() => loadText('a: [1'))[0].message).toMatch(/^config: the YAML is not valid/);
    expect(problemsOf(() => loadText('- a'))[0].message).toMatch(/is not a map of keys/);
    expect(problemsOf(() => loadText('defaults: [base]\nseed: {train: .nan}'))[0].message).toBe(
      'config: seed.train is NaN: use a finite number',
    );
    expect(problemsOf(() => loadText('['.repeat(20_000)))[0].message).toMatch(/^config: the YAML/);
  });
});

describe('schema', () => {
  test.each([
    ['actor_rollout_ref.actor.clip_ratio_c=1', 'config: actor_rollout_ref.actor.clip_ratio_c is 1: use a number > 1'],
    ['actor_rollout_ref.rollout.temperature=0', 'config: actor_rollout_ref.rollout.temperature is 0: use a number > 0'],
    [
      'actor_rollout_ref.actor.loss_agg_mode=token',
      'config: actor_rollout_ref.actor.loss_agg_mode is "token": use one of token-mean, seq-mean-token-sum, seq-mean-token-mean, seq-mean-token-sum-norm',
    ],
    [
      'actor_rollout_ref.actor.optim.betas=[0.9,1]',
      'config: actor_rollout_ref.actor.optim.betas[1] is 1: use a number ≥ 0 and < 1',
    ],
    ['custom_envs.Bandit.max_tokens=no', 'config: custom_envs.Bandit.max_tokens is "no": use an integer ≥ 1 or null'],
    ['custom_envs.Bandit=3', 'config: custom_envs.Bandit is 3: use a map of keys'],
    ['~seed.val', 'config: seed.val is missing: add it (an integer ≥ 0)'],
    ['trainer.val_before_train=yes', 'config: trainer.val_before_train is "yes": use true or false'],
    ['lora.rank=-1', 'config: lora.rank is -1: use an integer ≥ 0'],
    ['lora.dropout=1', 'config: lora.dropout is 1: use a number ≥ 0 and < 1'],
    ['workbench.device=gpu', 'config: workbench.device is "gpu": use one of auto, cpu, webgpu, cuda'],
    ['actor_rollout_ref.rollout.min_p=1.5', 'config: actor_rollout_ref.rollout.min_p is 1.5: use a number ≥ 0 and ≤ 1'],
    ['workbench.threads=1.5', 'config: workbench.threads is 1.5: use an integer ≥ 0'],
    [
      '+custom_envs.a/b={env_type: x, max_actions_per_traj: 1}',
      'config: custom_envs.a/b is not a valid name: use only letters, digits, dots, hyphens and underscores in "a/b"',
    ],
  ])('refuses %s', (override, message) => {
    expect(messages('base', override)).toEqual([message]);
  });

  test('the hyphenated spelling of low_var_kl is accepted', () => {
    expect(
      load('base', 'actor_rollout_ref.actor.kl_loss_type=low-var-kl').config.actor_rollout_ref.actor.kl_loss_type,
    ).toBe('low_var_kl');
  });
});

describe('rules between keys', () => {
  test.each([
    [
      ['es_manager.train.env_groups=9'],
      'config: es_manager.train.env_groups is 9, but the sum of n_groups is 8: make the two numbers equal',
    ],
    [
      ['+custom_envs.Bandit.rewards={thought_length:{weight:1,min:9,max:5}}'],
      'config: custom_envs.Bandit.rewards.thought_length.min is 9, but the largest length (max) is 5: make min at most max',
    ],
    [
      ['+custom_envs.Bandit.rewards={format:{weight:1}}'],
      'config: custom_envs.Bandit.rewards.format is set, but custom_envs.Bandit.prompt_format is null: set it to a format, or this key to null',
    ],
    [
      [
        '+custom_envs.Bandit.prompt_format=worldmodeling_structured',
        '+custom_envs.Bandit.rewards={observation:{weight:1}}',
      ],
      'config: custom_envs.Bandit.rewards.observation is set, but custom_envs.Bandit.prompt_format is worldmodeling_structured, which has no <observation>: choose grounding or grounding_worldmodeling, or set this key to null',
    ],
    [
      ['+custom_envs.Bandit.prompt_format=worldmodeling', '+custom_envs.Bandit.rewards={prediction:{weight:1}}'],
      'config: custom_envs.Bandit.rewards.prediction is set, but only a judge can score descriptions in sentences: set rewards.state_judge, choose worldmodeling_structured or worldmodeling_symbolic, or set this key to null',
    ],
    [
      [
        'model_info={free:{provider_name:openai,model_name:m}}',
        '+custom_envs.Bandit.prompt_format=grounding_symbolic',
        '+custom_envs.Bandit.rewards={observation:{weight:1},state_judge:{models:[free]}}',
      ],
      'config: custom_envs.Bandit.rewards.state_judge is set, but it would score nothing: choose a prompt_format with descriptions in sentences (grounding, worldmodeling) and set rewards.observation or rewards.prediction, or set this key to null',
    ],
    [
      ['+custom_envs.Bandit.rewards={judges:{style:{weight:1,rubric:r.md,models:[none]}}}'],
      'config: custom_envs.Bandit.rewards.judges.style.models[0] is "none", which is not a model of model_info: add it to model_info',
    ],
    [
      [
        '+custom_envs.Bandit.rewards={judges:{style:{weight:1,rubric:r.md,models:[free],max_cost:2}}}',
        'model_info={free:{provider_name:openai,model_name:m}}',
      ],
      'config: custom_envs.Bandit.rewards.judges.style.max_cost is 2, but model_info.free has no price_per_million: set its prices, or use max_tokens',
    ],
    [
      ['es_manager.val.env_configs.tags=[Bandit,CoordSokoban]'],
      'config: es_manager.val.env_configs.n_groups has 1 numbers for 2 tags: give one number per tag',
    ],
    [
      ['es_manager.val.env_configs.tags=[CordSokoban]'],
      'config: es_manager.val.env_configs.tags[0] is "CordSokoban", which is not a tag of custom_envs: did you mean CoordSokoban?',
    ],
    [
      ['micro_batch_size_per_gpu=5'],
      'config: micro_batch_size_per_gpu is 5, which does not divide ppo_mini_batch_size 32: choose a divisor',
    ],
    [
      ['ppo_mini_batch_size=256'],
      'config: ppo_mini_batch_size is 256, more than the 128 episodes that a step trains on (env_groups 8 × group_size 16 × share kept by the rollout filter): use a smaller value, or raise env_groups',
    ],
    [
      [
        'actor_rollout_ref.rollout.rollout_filter_strategy=top_k_abs',
        'actor_rollout_ref.rollout.rollout_filter_value=1',
      ],
      'config: ppo_mini_batch_size is 32, more than the 16 episodes that a step trains on (env_groups 8 × group_size 16 × share kept by the rollout filter): use a smaller value, or raise env_groups',
    ],
    [
      ['actor_rollout_ref.rollout.response_length=3600'],
      'config: actor_rollout_ref.rollout.response_length is 3600, which leaves no room for a prompt in max_model_len 3600: lower response_length',
    ],
    [
      ['actor_rollout_ref.rollout.val_kwargs.temperature=0'],
      'config: actor_rollout_ref.rollout.val_kwargs.temperature is 0, but do_sample is true: use a value above 0, or set do_sample to false for greedy decoding',
    ],
    [
      ['actor_rollout_ref.actor.use_kl_loss=true', 'actor_rollout_ref.actor.use_ref=false'],
      'config: actor_rollout_ref.actor.use_ref is false, but use_kl_loss needs the reference policy: set this key to true',
    ],
    [
      [
        'actor_rollout_ref.rollout.rollout_filter_strategy=top_k_abs',
        'actor_rollout_ref.rollout.rollout_filter_value=2.5',
      ],
      'config: actor_rollout_ref.rollout.rollout_filter_value is 2.5, but with rollout_filter_strategy top_k_abs this key is a number of groups: use an integer of at least 1',
    ],
    [
      ['actor_rollout_ref.rollout.rollout_filter_strategy=min_p', 'actor_rollout_ref.rollout.rollout_filter_value=2'],
      'config: actor_rollout_ref.rollout.rollout_filter_value is 2, but with rollout_filter_strategy min_p this key is a share: use a number from 0 to 1',
    ],
    [
      ['es_manager.train.group_size=1', 'ppo_mini_batch_size=4', 'actor_rollout_ref.rollout.rollout_filter_value=0.9'],
      'config: es_manager.train.group_size is 1, but reward_variance needs at least two episodes in a group: use 2 or more, or keep all groups (rollout_filter_strategy top_p, rollout_filter_value 1, rollout_filter_include_zero true)',
    ],
    [
      ['workbench.curriculum={}'],
      'config: workbench.curriculum is set, but training has one tag: set it to null, or train on several tags',
    ],
    [
      [
        'workbench.curriculum={easy_above: 0.2, hard_below: 0.3}',
        'es_manager.train.env_configs.tags=[CoordSokoban,Bandit]',
        'es_manager.train.env_configs.n_groups=[4,4]',
      ],
      'config: workbench.curriculum.hard_below is 0.3, but easy_above is 0.2: use a smaller value',
    ],
    [
      ['workbench.filter_by_tag=true', 'workbench.compat=ragen'],
      'config: workbench.filter_by_tag is true, but RAGEN (workbench.compat=ragen) selects among the groups of all environments: set it to false',
    ],
    [
      [
        ...['workbench.filter_by_tag=true', 'actor_rollout_ref.rollout.rollout_filter_strategy=top_k_abs'],
        ...['actor_rollout_ref.rollout.rollout_filter_value=3', 'ppo_mini_batch_size=80'],
        'es_manager.train.env_configs.tags=[CoordSokoban,Bandit]',
        'es_manager.train.env_configs.n_groups=[7,1]',
      ],
      'config: ppo_mini_batch_size is 80, more than the 64 episodes that a step trains on (env_groups 8 × group_size 16 × share kept by the rollout filter): use a smaller value, or raise env_groups',
    ],
    [
      [...byCurriculum, 'ppo_mini_batch_size=96'],
      'config: ppo_mini_batch_size is 96, more than the 80 episodes that a step trains on (env_groups 8 × group_size 16 × share kept by the rollout filter): use a smaller value, or raise env_groups',
    ],
    [
      ['workbench.trajectory_filter.strategy=top', 'workbench.compat=ragen', 'ppo_mini_batch_size=4'],
      'config: workbench.trajectory_filter.strategy is top, but RAGEN (workbench.compat=ragen) filters only whole groups: set it to none',
    ],
    [
      [
        'workbench.trajectory_filter.strategy=top',
        'workbench.trajectory_filter.value=0.1',
        'actor_rollout_ref.rollout.rollout_filter_value=1',
      ],
      'config: ppo_mini_batch_size is 32, more than the 12.8 episodes that a step trains on (env_groups 8 × group_size 16 × share kept by the filters): use a smaller value, or raise env_groups',
    ],
    [
      ['workbench.rollout_quantization=int8'],
      'config: workbench.rollout_quantization is int8, but all weights are trained, and only a frozen base can be quantised: set lora.rank above 0',
    ],
    [
      ['workbench.base_quantization=int8'],
      'config: workbench.base_quantization is int8, but all weights are trained, and only a frozen base can be quantised: set lora.rank above 0',
    ],
    [
      ['algorithm.rollout_correction.rollout_is=token', 'algorithm.rollout_correction.bypass_mode=true'],
      "config: algorithm.rollout_correction.rollout_is is token, but bypass_mode uses the sampler's log-probs as old log-probs, so there is nothing to correct: set bypass_mode to false",
    ],
    [
      ['lora.rank=8', 'workbench.rollout_quantization=int8', 'algorithm.rollout_correction.bypass_mode=true'],
      'config: algorithm.rollout_correction.bypass_mode is true, but 8-bit rollouts need old log-probs of the training graph: set bypass_mode to false',
    ],
    [
      ['lora.rank=8', 'critic.model.lora_rank=4', 'algorithm.adv_estimator=gae'],
      "config: critic.model.lora_rank is 4, but the critic's adapters must match the actor's: set it to 8",
    ],
    [
      ['workbench.device=webgpu', 'critic.optim.moments=int8'],
      'config: critic.optim.moments is int8, but on WebGPU the moments are always float32: use float32, or set workbench.device to cpu',
    ],
    [
      ['algorithm.bi_level_gae=true', 'algorithm.adv_estimator=grpo'],
      'config: algorithm.bi_level_gae is true, but adv_estimator is grpo, which has no critic: set adv_estimator to gae',
    ],
    [
      ['agent_proxy.use_turn_scores=true', 'algorithm.adv_estimator=rloo'],
      'config: agent_proxy.use_turn_scores is true, but adv_estimator rloo compares whole episodes: set adv_estimator to gae, grpo or reinforce_plus_plus, or set this key to false',
    ],
    [
      ['agent_proxy.use_turn_scores=true', 'agent_proxy.reward_normalization.method=mean'],
      'config: agent_proxy.reward_normalization.method is mean, but with use_turn_scores there is no episode score to normalise: use identity',
    ],
    [
      ['agent_proxy.use_turn_scores=true', 'algorithm.bi_level_gae=true', 'workbench.compat=ragen'],
      'config: workbench.compat is ragen, but RAGEN does not support use_turn_scores with bi_level_gae: set workbench.compat to corrected',
    ],
    [
      ['grpo_advantage_length_weight=true'],
      'config: grpo_advantage_length_weight is true, but this key only applies to GRPO advantages: set adv_estimator to grpo, or set this key to false',
    ],
    [
      ['algorithm.soft_advantage_reweight=true', 'algorithm.adv_estimator=brpo'],
      'config: algorithm.soft_advantage_reweight is true, but this key only applies to GRPO advantages: set adv_estimator to grpo, or set this key to false',
    ],
    [
      ['algorithm.use_kl_in_reward=true', 'actor_rollout_ref.actor.use_ref=false'],
      'config: actor_rollout_ref.actor.use_ref is false, but use_kl_in_reward needs the reference policy: set this key to true',
    ],
    [
      ['enable_response_mask=false', 'algorithm.rollout_correction.bypass_mode=true'],
      'config: algorithm.rollout_correction.bypass_mode is true, but with enable_response_mask=false the loss covers tokens that were not sampled and have no log-probs: set bypass_mode to false',
    ],
    [
      ['workbench.compat=ragen', 'algorithm.rollout_correction.bypass_mode=true'],
      'config: algorithm.rollout_correction.bypass_mode is true, but with workbench.compat=ragen the loss covers tokens that were not sampled and have no log-probs: set bypass_mode to false',
    ],
    [
      ['trainer.resume_mode=resume_path'],
      'config: trainer.resume_from_path is null, but resume_mode is resume_path: name the folder of a checkpoint, such as step-000100',
    ],
    [
      ['reward_model.overlong_buffer.enable=true', 'reward_model.overlong_buffer.len=401'],
      'config: reward_model.overlong_buffer.len is 401, more than response_length 400: use at most 400',
    ],
    [
      ['algorithm.filter_groups.enable=true', 'es_manager.train.group_size=1', 'ppo_mini_batch_size=4'],
      'config: es_manager.train.group_size is 1, but filter_groups compares the episodes of a group and needs at least two: use 2 or more',
    ],
    [
      ['workbench.context_mask=past_thoughts', 'agent_proxy.context_window_mode=single_turn'],
      'config: workbench.context_mask is "past_thoughts", but context_window_mode is single_turn, whose prompts summarise earlier turns as text: use full or limited_multi_turn',
    ],
    [
      ['workbench.context_mask=unsure_thoughts', 'agent_proxy.enable_think=false'],
      'config: workbench.context_mask is "unsure_thoughts", but enable_think is false, so responses have no thought: set it to true',
    ],
    [
      [
        'workbench.context_mask=past_thoughts',
        'es_manager.train.env_configs.tags=[Bandit]',
        'es_manager.val.env_configs.tags=[Bandit]',
        '+custom_envs.Bandit.prompt_format=no_think',
      ],
      'config: workbench.context_mask is "past_thoughts", but custom_envs.Bandit.prompt_format is no_think, so responses have no thought: choose free_think',
    ],
  ])('refuse %j', (overrides, message) => {
    expect(messages('base', ...overrides)).toEqual([message]);
  });

  test.each([
    ['actor_rollout_ref.actor.optim.moments=int8', 'critic.optim.moments=int8'],
    ['lora.rank=8', 'workbench.rollout_quantization=int8', 'algorithm.rollout_correction.rollout_is=sequence'],
    ['lora.rank=8', 'workbench.base_quantization=int8', 'algorithm.adv_estimator=gae'],
    ['actor_rollout_ref.model.lora_adapter_path=adapters/first', 'workbench.rollout_quantization=int8'],
    ['workbench.device=webgpu', 'lora.target_modules=[q_proj,v_proj]'],
    ['agent_proxy.context_window_mode=single_turn', 'agent_proxy.max_context_window=null'],
    ['workbench.context_mask=past_thoughts', 'agent_proxy.context_window_mode=limited_multi_turn'],
    [
      'workbench.context_mask=past_thoughts',
      'agent_proxy.enable_think=false',
      'es_manager.train.env_configs.tags=[Bandit]',
      '+custom_envs.Bandit.prompt_format=free_think',
    ],
    [...byCurriculum, 'ppo_mini_batch_size=80'],
  ])('%s is accepted', (...overrides) => {
    expect(() => load('base', ...overrides)).not.toThrow();
  });

  test('a greedy validation may have temperature 0', () => {
    const { config } = load(
      'base',
      'actor_rollout_ref.rollout.val_kwargs.temperature=0',
      'actor_rollout_ref.rollout.val_kwargs.do_sample=false',
    );
    expect(config.actor_rollout_ref.rollout.val_kwargs.temperature).toBe(0);
  });

  test('names of prototype properties are not tags', () => {
    expect(messages('base', 'es_manager.val.env_configs.tags=[constructor]')[0]).toMatch(/is not a tag of custom_envs/);
  });
});

describe('remax', () => {
  test('is an estimator with a baseline that is not normalised', () => {
    expect(load('base', 'algorithm.adv_estimator=remax').config.algorithm.adv_estimator).toBe('remax');
    expect(messages('base', 'algorithm.adv_estimator=remax', 'agent_proxy.reward_normalization.method=mean')).toEqual([
      'config: agent_proxy.reward_normalization.method is mean, but adv_estimator remax subtracts the score of a greedy episode, which is not normalised: use identity',
    ]);
  });

  test('compares complete episodes', () => {
    expect(messages('base', 'algorithm.adv_estimator=remax', 'agent_proxy.use_turn_scores=true')).toEqual([
      'config: agent_proxy.use_turn_scores is true, but adv_estimator remax compares whole episodes: set adv_estimator to gae, grpo or reinforce_plus_plus, or set this key to false',
    ]);
  });

  test('refuses invalid settings', () => {
    expect(messages('base', 'lora.rank=high')).toEqual(['config: lora.rank is "high": use an integer ≥ 0']);
  });
});
