// The preset quickstart-vision and its bundled model ragen-tiny-vision: the model's size, its names of cells and moves, and
// that the picture of a tile is one token; validation on maps that are never trained on.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawLake } from '../../../../envs/frozen-lake/lake';
import { lakePicture } from '../../../../envs/frozen-lake/picture';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { modelSource } from '../../../../extension/trainer/config/model-path';
import { load, repository } from './presets';

const models = join(repository, 'media/models');
const folder = join(models, 'ragen-tiny-vision');
const { config } = load('quickstart-vision');

test('trains the bundled model on pictures of lakes', () => {
  expect(config.model_path).toBe('ragen-tiny-vision');
  expect(config.trainer.experiment_name).toBe('quickstart-vision');
  const { train, val } = config.es_manager;
  for (const { env_configs } of [train, val])
    for (const tag of env_configs.tags)
      expect(config.custom_envs[tag]).toMatchObject({
        env_type: 'frozen_lake',
        env_config: { render_mode: 'rgb_array' },
      });
});

test('its validation episodes have other seeds than its training episodes', () => {
  const { seed, es_manager, trainer } = config;
  const trained = [seed.train, seed.train + es_manager.train.env_groups * trainer.total_training_steps];
  expect(seed.val + es_manager.val.env_groups <= trained[0] || seed.val >= trained[1]).toBe(true);
});

test('the model is bundled under its name, with at most 1.5 M parameters and 4 MB', async () => {
  expect(modelSource('ragen-tiny-vision', { workspace: '/nowhere', modelFolders: [models] })).toEqual({ folder });
  const { decoder, encoder } = await readVisionModel(folder);
  expect(decoder.count + encoder.count).toBeLessThan(1.5e6);
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  expect(bytes).toBeLessThan(4e6);
});

test('its tensors have the names that transformers reads', () => {
  const bytes = readFileSync(join(folder, 'model.safetensors'));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + Number(bytes.readBigUInt64LE(0)))) as Record<string, unknown>;
  for (const name of Object.keys(header)) expect(name).toMatch(/^(__metadata__$|model\.(language_model|visual)\.)/);
});

test('the picture of a tile is one token, and a cell is two: its row and its column', async () => {
  const tokenizer = readTokenizer(folder);
  const lake = drawLake(4, 0.8, 123);
  const { width, height } = await decodePicture(lakePicture(lake, lake.start));
  expect(tokenizer.pictures!.tokens({ width, height })).toBe(16);
  const thought = 'Me (2, 0), goal (0, 1): 2 up, 1 right. Up (1, 0) free, Up (0, 0) free.';
  const ids = tokenizer.encode(thought);
  expect(tokenizer.decode(ids)).toBe(thought);
  const texts = ids.map(id => tokenizer.decode([id]));
  expect(texts.filter(text => /^ ?\(\d$/.test(text))).toEqual([' (2', ' (0', ' (1', ' (0']);
  expect(texts.filter(text => /^, \d\)$/.test(text))).toEqual([', 0)', ', 1)', ', 0)', ', 0)']);
});
