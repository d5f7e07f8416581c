// The presets of ragen-small: each is a complete configuration of the bundled model, validates on seeds or problems that
// training does not use, and keeps what the system message states the same for all, so that the model knows its prompts.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { modelSource } from '../../../../extension/trainer/config/model-path';
import { readDecoderConfig, readTokenizer } from '../../../../extension/models/weights/model-folder';
import { load, presetFolder, repository } from './presets';

const models = join(repository, 'media/models');
const names = readdirSync(presetFolder)
  .filter(name => /^quickstart-.*\.yaml$/.test(name) && name !== 'quickstart-vision.yaml')
  .map(name => name.replace('.yaml', ''));

test('there is a preset for each environment and for the mixture', () => {
  const types = (name: string) => {
    const { custom_envs, es_manager } = load(name).config;
    return es_manager.train.env_configs.tags.map(tag => custom_envs[tag].env_type);
  };
  const single = names.filter(name => name !== 'quickstart-mixture').flatMap(types);
  const all = ['bandit', 'countdown', 'frozen_lake', 'game_2048', 'rubikscube', 'sokoban', 'sudoku', 'webshop'];
  expect([...new Set(single)].sort()).toEqual(all);
  expect([...new Set(types('quickstart-mixture'))].sort()).toEqual(all);
});

describe.each(names)('%s', name => {
  const { config } = load(name);

  test('trains ragen-small, with the actions per answer that its prompts state', () => {
    expect(config.model_path).toBe('ragen-small');
    expect(config.agent_proxy.max_actions_per_turn).toBe(3);
    expect(config.trainer.experiment_name).toBe(name);
  });

  test('its validation episodes have other seeds than its training episodes', () => {
    const { seed, es_manager, trainer } = config;
    const trained = [seed.train, seed.train + es_manager.train.env_groups * trainer.total_training_steps];
    expect(seed.val + es_manager.val.env_groups <= trained[0] || seed.val >= trained[1]).toBe(true);
  });
});

test('ragen-small is bundled under its name, as a Qwen3 model of at most 4 M parameters and 9 MB', () => {
  const source = modelSource('ragen-small', { workspace: '/nowhere', modelFolders: [models] });
  expect(source).toEqual({ folder: join(models, 'ragen-small') });
  const folder = join(models, 'ragen-small');
  expect(readDecoderConfig(folder)).toMatchObject({ family: 'qwen3' });
  expect(readTokenizer(folder).decode(readTokenizer(folder).encode('me (0, 1), goal (3, 2), 3 down'))).toBe(
    'me (0, 1), goal (3, 2), 3 down',
  );
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  expect(bytes).toBeLessThan(9e6);
  expect(statSync(join(folder, 'model.safetensors')).size / 2).toBeLessThan(4e6);
});
