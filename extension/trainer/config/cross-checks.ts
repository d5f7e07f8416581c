// Rules between keys that a schema cannot express: RAGEN's own assertions, plus combinations that would fail later in a
// run or have no effect. Each violation is one sentence about the key to change.
import { shown } from './config-error';
import type { RunConfig } from './schema';
import { didYouMean } from '../../common/suggest';

/** A violated rule; `sentence` continues after the key name. */
export interface BrokenRule {
  key: string;
  sentence: string;
  /** The value is a secret and must not appear in messages. */
  unshown?: true;
}

/** Returns all rules that `config` violates, in key order. */
export function brokenRules(config: RunConfig): BrokenRule[] {
  return [
    ...groupRules(config),
    ...contextRules(config),
    ...batchRules(config),
    ...advantageRules(config),
    ...maskRules(config),
    ...samplingRules(config),
    ...adapterRules(config),
    ...optimizerRules(config),
    ...filterRules(config),
    ...courseRules(config),
    ...resumeRules(config),
    ...gradientRules(config),
    ...secretRules(config),
  ];
}

function groupRules({ es_manager, custom_envs }: RunConfig): BrokenRule[] {
  return (['train', 'val'] as const).flatMap(mode => {
    const at = `es_manager.${mode}`;
    const { env_groups, env_configs } = es_manager[mode];
    const { tags, n_groups } = env_configs;
    const broken: BrokenRule[] = tags
      .map((name, index) => ({ name, key: `${at}.env_configs.tags[${index}]` }))
      .filter(({ name }) => !Object.hasOwn(custom_envs, name))
      .map(({ name, key }) => {
        const remedy = didYouMean(name, Object.keys(custom_envs), 'add it there');
        return { key, sentence: `is ${shown(name)}, which is not a tag of custom_envs: ${remedy}` };
      });
    const total = n_groups.reduce((sum, n) => sum + n, 0);
    if (tags.length !== n_groups.length)
      broken.push({
        key: `${at}.env_configs.n_groups`,
        sentence: `has ${n_groups.length} numbers for ${tags.length} tags: give one for each`,
      });
    else if (total !== env_groups)
      broken.push({
        key: `${at}.env_groups`,
        sentence: `is ${env_groups} but n_groups sums to ${total}: make them equal`,
      });
    return broken;
  });
}

/** Key names whose value is a secret, and URLs that contain a password. */
const secretKey = /(^|[_-])(api[_-]?key|passw(or)?d|secret|authorization|(access|auth|api|bearer|hub|hf)[_-]?token)$/i;
const variableOfKey = /(^|_)key_env$/;
const secretAddress = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]*:[^\s/?#@]+@/i;

/** Returns whether a key with this name may hold a secret, even by mistake; messages then omit the value. */
export const mayHoldSecret = (name: string): boolean => secretKey.test(name) || variableOfKey.test(name);

/**
 * Rejects secrets in values passed to environments and services, because the run manifest stores the whole
 * configuration. Messages never include the secret.
 */
function secretRules({ custom_envs, model_info, model_path }: RunConfig): BrokenRule[] {
  const found = (value: unknown, key: string, name: string): BrokenRule[] => {
    if (typeof value === 'string') {
      if (secretAddress.test(value))
        return [
          {
            key,
            unshown: true,
            sentence: 'is a URL with a password, which would be saved in the run folder: remove the password',
          },
        ];
      if (secretKey.test(name) && value !== '')
        return [
          {
            key,
            unshown: true,
            sentence:
              'holds a secret, which would be saved in the run folder: move it to an environment variable, and name that variable in api_key_env if the environment has this key',
          },
        ];
      if (variableOfKey.test(name) && !/^[A-Z_][A-Z0-9_]{0,63}$/.test(value))
        return [
          {
            key,
            unshown: true,
            sentence:
              'is not the name of an environment variable: give the upper-case name of the variable that holds the key, not the key',
          },
        ];
      return [];
    }
    if (Array.isArray(value)) return value.flatMap((item, i) => found(item, `${key}[${i}]`, name));
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([name, child]) => found(child, `${key}.${name}`, name));
  };
  return [
    ...Object.entries(custom_envs).flatMap(([tag, { env_config }]) =>
      found(env_config, `custom_envs.${tag}.env_config`, ''),
    ),
    ...Object.entries(model_info ?? {}).flatMap(([name, { generation_kwargs }]) =>
      found(generation_kwargs, `model_info.${name}.generation_kwargs`, ''),
    ),
    ...found(model_path, 'model_path', ''),
  ];
}

/**
 * A gradient-only rollout keeps the tag proportions of training, so its groups must split evenly in these proportions.
 */
function gradientRules({ trainer, es_manager }: RunConfig): BrokenRule[] {
  const groups = trainer.gradient_analysis_env_groups;
  const { env_groups, env_configs } = es_manager.train;
  const { n_groups } = env_configs;
  if (groups === null || n_groups.every(n => (n * groups) % env_groups === 0)) return [];
  const sentence = `is ${groups}, which cannot be split among the tags in the ratio ${n_groups.join(':')}: use a multiple of ${env_groups}`;
  return [{ key: 'trainer.gradient_analysis_env_groups', sentence }];
}

function contextRules({ agent_proxy }: RunConfig): BrokenRule[] {
  const sentence = 'is 0, but the window includes the current turn: use 1 or more, or -1 for all turns';
  return agent_proxy.max_context_window === 0 ? [{ key: 'agent_proxy.max_context_window', sentence }] : [];
}

function batchRules(config: RunConfig): BrokenRule[] {
  const { actor, rollout } = config.actor_rollout_ref;
  const { env_groups, group_size } = config.es_manager.train;
  const broken: BrokenRule[] = [];
  const updates = [{ at: 'actor_rollout_ref.actor', ...actor }];
  if (config.algorithm.adv_estimator === 'gae') updates.push({ at: 'critic', ...actor, ...config.critic });
  const value = rollout.rollout_filter_value;
  const share = {
    top_p: Math.min(value, 1),
    top_k: Math.min(value, 1),
    top_k_abs: Math.min(value / env_groups, 1),
    min_p: 1,
  };
  const { context_window_mode, max_turn } = config.agent_proxy;
  const perEpisode = context_window_mode === 'full' ? 1 : max_turn; // upper bound
  const { strategy, value: best } = config.workbench.trajectory_filter;
  const episodes = env_groups * group_size * share[rollout.rollout_filter_strategy] * (strategy === 'top' ? best : 1);
  const kept = episodes * perEpisode;
  for (const { at, ppo_mini_batch_size: mini, ppo_micro_batch_size_per_gpu: micro } of updates) {
    const key = `${at}.ppo_mini_batch_size`;
    if (mini % micro !== 0)
      broken.push({
        key: `${at}.ppo_micro_batch_size_per_gpu`,
        sentence: `is ${micro}, which does not divide ppo_mini_batch_size ${mini}: choose a divisor`,
      });
    if (kept < mini)
      broken.push({
        key,
        sentence: `is ${mini}, more than the ${Number(kept.toFixed(2))} episodes a step trains on (env_groups ${env_groups} × group_size ${group_size} × share kept by the ${strategy === 'top' ? 'filters' : 'rollout filter'}): lower it or sample more`,
      });
  }
  return broken;
}

/** Rules between the advantage estimator, turn rewards and advantage factors. */
function advantageRules({ algorithm, agent_proxy, actor_rollout_ref: { actor }, workbench }: RunConfig): BrokenRule[] {
  const { adv_estimator: estimator, bi_level_gae, soft_advantage_reweight } = algorithm;
  const { use_turn_scores, reward_normalization } = agent_proxy;
  const broken: BrokenRule[] = [];
  const need = (wanted: boolean, key: string, sentence: string): void => {
    if (wanted) broken.push({ key, sentence });
  };
  need(
    bi_level_gae && estimator !== 'gae',
    'algorithm.bi_level_gae',
    `is true, but adv_estimator is ${estimator}, which has no critic: set adv_estimator to gae`,
  );
  need(
    use_turn_scores && !['gae', 'grpo', 'reinforce_plus_plus'].includes(estimator),
    'agent_proxy.use_turn_scores',
    `is true, but ${estimator} compares whole episodes: use gae, grpo or reinforce_plus_plus, or set it to false`,
  );
  need(
    use_turn_scores && reward_normalization.method !== 'identity',
    'agent_proxy.reward_normalization.method',
    `is ${reward_normalization.method}, but with use_turn_scores there is no episode score to normalise: set it to identity`,
  );
  need(
    estimator === 'remax' && reward_normalization.method !== 'identity',
    'agent_proxy.reward_normalization.method',
    `is ${reward_normalization.method}, but remax compares with the score of a greedy episode, which is not normalised: set it to identity`,
  );
  need(
    use_turn_scores && bi_level_gae && workbench.compat === 'ragen',
    'workbench.compat',
    'is ragen, which has no bi-level GAE over turn scores: set it to corrected',
  );
  const factors = {
    'algorithm.soft_advantage_reweight': soft_advantage_reweight,
    'actor_rollout_ref.actor.grpo_advantage_length_weight': actor.grpo_advantage_length_weight,
  };
  for (const [key, on] of Object.entries(factors))
    need(
      on && estimator !== 'grpo',
      key,
      `is true, but it only applies to GRPO advantages: set adv_estimator to grpo, or this key to false`,
    );
  return broken;
}

/** The sampler only has log-probs of the tokens it sampled. */
function maskRules({ algorithm, rollout_manager, workbench }: RunConfig): BrokenRule[] {
  const reason = !rollout_manager.use_loss_mask
    ? 'enable_response_mask=false'
    : workbench.compat === 'ragen'
      ? 'workbench.compat=ragen'
      : null;
  if (!algorithm.rollout_correction.bypass_mode || reason === null) return [];
  return [
    {
      key: 'algorithm.rollout_correction.bypass_mode',
      sentence: `is true, but with ${reason} the loss covers tokens that were not sampled and have no log-probs: set it to false`,
    },
  ];
}

function courseRules({ trainer }: RunConfig): BrokenRule[] {
  if (trainer.total_training_steps > 0 || trainer.val_only) return [];
  const sentence = 'is 0, but val_only is false: use 1 or more, or set trainer.val_only to true for an evaluation';
  return [{ key: 'trainer.total_training_steps', sentence }];
}

function resumeRules({ trainer }: RunConfig): BrokenRule[] {
  if (trainer.resume_mode !== 'resume_path' || trainer.resume_from_path !== null) return [];
  const sentence = 'is null, but resume_mode is resume_path: name the folder of a checkpoint, such as step-000100';
  return [{ key: 'trainer.resume_from_path', sentence }];
}

function samplingRules(config: RunConfig): BrokenRule[] {
  const { actor, rollout } = config.actor_rollout_ref;
  const { overlong_buffer } = config.reward_model;
  const broken: BrokenRule[] = [];
  if (overlong_buffer.enable && overlong_buffer.len > rollout.response_length)
    broken.push({
      key: 'reward_model.overlong_buffer.len',
      sentence: `is ${overlong_buffer.len}, more than response_length ${rollout.response_length}: lower it`,
    });
  if (rollout.response_length >= rollout.max_model_len)
    broken.push({
      key: 'actor_rollout_ref.rollout.response_length',
      sentence: `is ${rollout.response_length}, which leaves no room for a prompt in max_model_len ${rollout.max_model_len}: lower it`,
    });
  if (rollout.val_kwargs.do_sample && rollout.val_kwargs.temperature === 0)
    broken.push({
      key: 'actor_rollout_ref.rollout.val_kwargs.temperature',
      sentence: 'is 0 while do_sample is true: raise it, or set do_sample to false for greedy decoding',
    });
  const kl = actor.use_kl_loss ? 'use_kl_loss' : config.algorithm.use_kl_in_reward ? 'use_kl_in_reward' : null;
  if (kl !== null && !actor.use_ref)
    broken.push({
      key: 'actor_rollout_ref.actor.use_ref',
      sentence: `is false, but ${kl} needs the reference policy: set it to true`,
    });
  return broken;
}

/** Rules for quantisation, rollout correction and adapters. */
function adapterRules({ actor_rollout_ref: { model }, critic, algorithm, workbench }: RunConfig): BrokenRule[] {
  const broken: BrokenRule[] = [];
  const adapts = model.lora_rank > 0 || model.lora_adapter_path !== null;
  for (const key of ['rollout_quantization', 'base_quantization'] as const)
    if (workbench[key] !== 'none' && !adapts)
      broken.push({
        key: `workbench.${key}`,
        sentence: `is ${workbench[key]}, but all weights are trained, and only a frozen base can be quantised: set lora.rank above 0`,
      });
  const { bypass_mode, rollout_is } = algorithm.rollout_correction;
  if (bypass_mode && rollout_is !== null && rollout_is !== 'auto')
    broken.push({
      key: 'algorithm.rollout_correction.rollout_is',
      sentence: `is ${rollout_is}, but bypass_mode uses the sampler's log-probs as old log-probs, so there is nothing to correct: set bypass_mode to false`,
    });
  if (bypass_mode && workbench.rollout_quantization !== 'none')
    broken.push({
      key: 'algorithm.rollout_correction.bypass_mode',
      sentence: `is true, but 8-bit rollouts need log-probs of the training graph: set it to false`,
    });
  const same = ['lora_rank', 'lora_alpha', 'lora_dropout'] as const;
  for (const key of algorithm.adv_estimator === 'gae' ? same : [])
    if (critic.model[key] !== model[key])
      broken.push({
        key: `critic.model.${key}`,
        sentence: `is ${critic.model[key]}, but the critic's adapters must match the actor's: set it to ${model[key]}`,
      });
  return broken;
}

function optimizerRules({ actor_rollout_ref: { actor }, critic, workbench }: RunConfig): BrokenRule[] {
  if (workbench.device !== 'webgpu') return [];
  return Object.entries({ 'actor_rollout_ref.actor': actor, critic })
    .filter(([, { optim }]) => optim.moments === 'int8')
    .map(([at]) => ({
      key: `${at}.optim.moments`,
      sentence:
        'is int8, but on WebGPU moments stay on the device in float32: set it to float32, or workbench.device to cpu',
    }));
}

function filterRules({ actor_rollout_ref: { rollout }, algorithm, es_manager, workbench }: RunConfig): BrokenRule[] {
  const at = 'actor_rollout_ref.rollout.rollout_filter_value';
  const { rollout_filter_value: value, rollout_filter_strategy: strategy, rollout_filter_metric: metric } = rollout;
  const broken: BrokenRule[] = [];
  if (strategy === 'top_k_abs' && (value < 1 || !Number.isInteger(value)))
    broken.push({ key: at, sentence: `is ${value}, but top_k_abs keeps a number of groups: use an integer ≥ 1` });
  if ((strategy === 'top_k' || strategy === 'min_p') && value > 1)
    broken.push({ key: at, sentence: `is ${value}, but ${strategy} takes a share: use a number from 0 to 1` });
  if (algorithm.filter_groups.enable && es_manager.train.group_size < 2)
    broken.push({
      key: 'es_manager.train.group_size',
      sentence: 'is 1, but filter_groups needs at least two episodes in a group to compare: raise it',
    });
  const filters = strategy !== 'top_p' || value < 1 || !rollout.rollout_filter_include_zero;
  if (filters && /_variance|_std/.test(metric) && es_manager.train.group_size < 2)
    broken.push({
      key: 'es_manager.train.group_size',
      sentence: `is 1, but ${metric} needs at least two episodes in a group: raise it or keep all groups (top_p with value 1 and include_zero)`,
    });
  if (workbench.trajectory_filter.strategy !== 'none' && workbench.compat === 'ragen')
    broken.push({
      key: 'workbench.trajectory_filter.strategy',
      sentence: `is ${workbench.trajectory_filter.strategy}, but RAGEN (workbench.compat=ragen) filters whole groups alone: set it to none`,
    });
  return broken;
}
