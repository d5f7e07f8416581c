// Values of RAGEN's evaluation configurations.
import { expect, test } from 'vitest';
import { beyondBase, load } from './presets';

test.each([
  [
    'eval',
    {
      'actor_rollout_ref.rollout.val_kwargs.logprobs': 20,
      'output.dir': 'results/eval',
      'es_manager.val.env_groups': 32,
      'es_manager.val.group_size': 16,
      'es_manager.val.env_configs.n_groups': [32],
    },
  ],
  [
    'evaluate_api_llm',
    {
      'es_manager.val.env_groups': 256,
      'es_manager.val.env_configs.n_groups': [256],
      'model_config.model_name': 'gpt-4o',
      'model_config.max_concurrency': 16,
    },
  ],
])('%s differs from base as in RAGEN', (name, difference) => {
  expect(beyondBase(name)).toEqual(difference);
  expect(load(name).notes).toEqual([]);
});

test('evaluate_api_llm uses gpt-4o at temperature 0', () => {
  const { model_info } = load('evaluate_api_llm').config;
  expect(model_info?.['gpt-4o']).toMatchObject({
    provider_name: 'openai',
    generation_kwargs: { temperature: 0, max_tokens: 512 },
  });
});
