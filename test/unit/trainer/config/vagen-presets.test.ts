// VAGEN's presets: what each changes, and that their tags train on pictures with rewards that the environments can give.
import { expect, test } from 'vitest';
import { estimatorName } from '../../../../extension/trainer/loop/built-in-estimators';
import { load } from './presets';

test.each([
  ['vagen-base', 'VagenSokoban', 'gae', 'grounding_worldmodeling', { format: 0.5 }],
  [
    'vagen-full',
    'VagenSokoban',
    'gae_by_turn',
    'grounding_worldmodeling_structured',
    { format: 0.5, observation: 0.5, prediction: 0.5 },
  ],
  [
    'vagen-frozen-lake',
    'VagenFrozenLake',
    'gae_by_turn',
    'grounding_worldmodeling_structured',
    { format: 0.5, observation: 0.5, prediction: 0.5 },
  ],
])('%s', (name, tag, estimator, format, weights) => {
  const { config } = load(name);
  expect(config.es_manager.train.env_configs).toEqual({ tags: [tag], n_groups: [128] });
  expect(config.es_manager.val.env_configs.tags).toEqual([tag]);
  expect(config.es_manager.format_penalty).toBe(0);
  expect(estimatorName(config)).toBe(estimator);
  expect(config.agent_proxy).toMatchObject({
    ...{ action_sep: ',', max_actions_per_turn: 3, use_turn_scores: estimator === 'gae_by_turn' },
  });
  expect(config.rollout_manager).toEqual({ use_loss_mask: true, use_gae_mask: true });
  expect(config.algorithm.high_level_gamma).toBe(0.95);
  const { prompt_format, rewards, env_config, max_actions_per_traj } = config.custom_envs[tag];
  expect(prompt_format).toBe(format);
  const { weights: _, judges, ...components } = rewards!;
  expect(judges).toEqual({});
  expect(
    Object.fromEntries(Object.entries(components).map(([key, value]) => [key, (value as { weight: number }).weight])),
  ).toEqual(weights);
  expect(env_config).toMatchObject({ render_mode: 'rgb_array', picture: 'sprites' });
  expect(max_actions_per_traj).toBe(config.agent_proxy.max_turn * config.agent_proxy.max_actions_per_turn);
  expect([config.ppo_mini_batch_size, config.actor_rollout_ref.actor.optim.lr, config.critic.optim.lr]).toEqual([
    32, 1e-6, 1e-5,
  ]);
});
