// Checks the settings of the policy: sampling and context lengths, the reference policy, adapters with quantisation,
// and optimizer moments. The `sentence` of each violated rule says what to change.
import type { RunConfig } from './schema';
import type { BrokenRule } from './broken-rule';

export function samplingRules(config: RunConfig): BrokenRule[] {
  const { actor, rollout } = config.actor_rollout_ref;
  const { overlong_buffer } = config.reward_model;
  const broken: BrokenRule[] = [];
  if (overlong_buffer.enable && overlong_buffer.len > rollout.response_length)
    broken.push({
      key: 'reward_model.overlong_buffer.len',
      sentence: `is ${overlong_buffer.len}, more than response_length ${rollout.response_length}: use at most ${rollout.response_length}`,
    });
  if (rollout.response_length >= rollout.max_model_len)
    broken.push({
      key: 'actor_rollout_ref.rollout.response_length',
      sentence: `is ${rollout.response_length}, which leaves no room for a prompt in max_model_len ${rollout.max_model_len}: lower response_length`,
    });
  if (rollout.val_kwargs.do_sample && rollout.val_kwargs.temperature === 0)
    broken.push({
      key: 'actor_rollout_ref.rollout.val_kwargs.temperature',
      sentence: 'is 0, but do_sample is true: use a value above 0, or set do_sample to false for greedy decoding',
    });
  const kl = actor.use_kl_loss ? 'use_kl_loss' : config.algorithm.use_kl_in_reward ? 'use_kl_in_reward' : null;
  if (kl !== null && !actor.use_ref)
    broken.push({
      key: 'actor_rollout_ref.actor.use_ref',
      sentence: `is false, but ${kl} needs the reference policy: set this key to true`,
    });
  return broken;
}

/** Rules for quantisation, rollout correction and adapters. */
export function adapterRules({ actor_rollout_ref: { model }, critic, algorithm, workbench }: RunConfig): BrokenRule[] {
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
      sentence: `is true, but 8-bit rollouts need old log-probs of the training graph: set bypass_mode to false`,
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

export function optimizerRules({ actor_rollout_ref: { actor }, critic, workbench }: RunConfig): BrokenRule[] {
  if (workbench.device !== 'webgpu') return [];
  return Object.entries({ 'actor_rollout_ref.actor': actor, critic })
    .filter(([, { optim }]) => optim.moments === 'int8')
    .map(([at]) => ({
      key: `${at}.optim.moments`,
      sentence: 'is int8, but on WebGPU the moments are always float32: use float32, or set workbench.device to cpu',
    }));
}
