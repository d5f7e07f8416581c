// VAGEN's names of advantage estimators, and the rules of GAE over turns.
import { expect, test } from 'vitest';
import { estimatorName } from '../../../../extension/trainer/loop/built-in-estimators';
import { load, messages } from './presets';

test.each([
  ['masked_gae', 'gae', {}],
  ['masked_grpo', 'grpo', {}],
  ['bi_level_gae', 'gae_by_turn', { turn_value: 'start' }],
  ['turn_wise_gae', 'gae_of_turns', { turn_gae: 'last', high_level_gamma: 0.95 }],
  ['no_concat_gae', 'gae_of_turns', { turn_gae: 'first', high_level_gamma: 0.75 }],
  ['no_concat_gae_last', 'gae_of_turns', { turn_gae: 'last', high_level_gamma: 0.75 }],
])('%s stands for %s', (name, estimator, settings) => {
  const { config } = load('base', `algorithm.adv_estimator=${name}`, 'algorithm.gamma=0.75');
  expect(config.algorithm.adv_estimator).toBe(estimator.split('_')[0]);
  expect(estimatorName(config)).toBe(estimator);
  expect({ ...config.workbench, ...config.algorithm }).toMatchObject(settings);
  expect(config.agent_proxy.use_turn_scores).toBe(estimator.includes('turn'));
});

test.each([
  [['algorithm.adv_estimator=grpo'], 'is first, but adv_estimator is grpo, which has no critic'],
  [['algorithm.adv_estimator=gae', 'algorithm.bi_level_gae=true'], 'is first, but bi_level_gae estimates'],
  [['algorithm.adv_estimator=gae', 'agent_proxy.use_turn_scores=false'], 'is first, which needs the rewards of turns'],
])('turn_gae with %j is refused', (overrides, message) => {
  const found = messages('base', 'workbench.turn_gae=first', 'agent_proxy.use_turn_scores=true', ...overrides);
  expect(found).toEqual([expect.stringContaining(`config: workbench.turn_gae ${message}`)]);
});

test('an unknown estimator is refused as before', () => {
  expect(messages('base', 'algorithm.adv_estimator=no_concat_gea')).toHaveLength(1);
});
