// Features that this version does not have yet. Their keys are accepted at the values listed and refused at any other, so that a
// configuration written for RAGEN either does what it says or says what is missing. A feature that lands deletes its line.
import { shown } from './config-error';

/** A key that may only have these values for want of a feature. */
export interface Restriction {
  key: string;
  available: readonly unknown[];
  /** Subject of the sentence "… is not available in this version". */
  feature: string;
}

export const restrictions: readonly Restriction[] = [
  {
    key: 'algorithm.adv_estimator',
    available: ['grpo', 'gae', 'rloo', 'reinforce_plus_plus', 'reinforce_plus_plus_baseline'],
    feature: 'this estimator',
  },
  { key: 'algorithm.bi_level_gae', available: [false], feature: 'bi-level GAE' },
  { key: 'algorithm.use_kl_in_reward', available: [false], feature: 'a KL penalty in the reward' },
  { key: 'algorithm.soft_advantage_reweight', available: [false], feature: 'soft reweighting of advantages' },
  { key: 'grpo_advantage_length_weight', available: [false], feature: 'length weighting of advantages' },
  {
    key: 'actor_rollout_ref.actor.grpo_advantage_length_weight',
    available: [false],
    feature: 'length weighting of advantages',
  },
  { key: 'agent_proxy.use_turn_scores', available: [false], feature: 'rewarding turns one by one' },
  { key: 'collapse_detection.first_turn_enabled', available: [false], feature: 'the collapse diagnosis' },
  { key: 'collapse_detection.multi_turn_enabled', available: [false], feature: 'the collapse diagnosis' },
  { key: 'trainer.gradient_analysis_mode', available: [false], feature: 'the gradient analysis' },
  { key: 'trainer.resume_mode', available: ['auto', 'disable'], feature: 'resuming from a path' },
  {
    key: 'actor_rollout_ref.rollout.rollout_filter_metric',
    available: ['reward_variance', 'reward_std', 'reward', 'reward_sum', 'length'],
    feature: 'filtering by entropy',
  },
];

/** The sentence about a key whose value needs a feature that is not there, or undefined when the value is available. */
export function unavailable(
  { key, available, feature }: Restriction,
  value: unknown,
  shownKey = key,
): string | undefined {
  if (available.includes(value)) return undefined;
  const remedy = available.length === 1 ? `set it to ${available[0]}` : `use one of ${available.join(', ')}`;
  return `config: ${shownKey} is ${shown(value)}, but ${feature} is not available in this version: ${remedy}`;
}
