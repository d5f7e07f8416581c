// Configurations and folders of vision-language models: keys of older versions, and what is rejected, by its name.
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseVisionConfig } from '../../../../extension/models/vision/vision-config';
import { readProcessorOptions, readVisionModel } from '../../../../extension/models/vision/vision-folder';

const golden = 'test/golden/vision/qwen2_5_vl';
type Json = Record<string, unknown>;
const json = JSON.parse(readFileSync(join(golden, 'config.json'), 'utf8')) as Json & {
  text_config: Json;
  vision_config: Json;
};
const parse = (config: unknown) => parseVisionConfig(config, 'config.json');
const withText = (keys: Json): Json => ({ ...json, text_config: { ...json.text_config, ...keys } });
const withVision = (keys: Json): Json => ({ ...json, vision_config: { ...json.vision_config, ...keys } });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vision-folder-'));
  for (const name of ['config.json', 'model.safetensors']) cpSync(join(golden, name), join(folder, name));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('reads the keys of transformers 4, in which the decoder has no section', () => {
  const { rope_parameters: _rope, ...text } = json.text_config;
  const { text_config: _, ...top } = json;
  const rope = { type: 'mrope', mrope_section: [1, 1, 2] };
  const flat = { ...top, ...text, model_type: 'qwen2_5_vl', rope_scaling: rope, rope_theta: 10_000 };
  expect(parse(flat)).toEqual(parse(json));
  expect(parse(json).decoder.rotaryAxes).toEqual([0, 1, 2, 2]);
});

it('has the defaults of transformers', () => {
  const { decoder, encoder, imageToken } = parse({
    model_type: 'qwen2_5_vl',
    text_config: {},
    vision_config: { out_hidden_size: 8192, num_heads: 28 },
  });
  expect(decoder).toMatchObject({
    hiddenSize: 8192,
    layers: 80,
    kvHeads: 8,
    normEps: 1e-5,
    ropeTheta: 1e6,
    tiedHead: false,
  });
  expect(encoder).toMatchObject({ layers: 32, windowSide: 4, mergeSize: 2, patchSize: 14, ropeTheta: 10_000 });
  expect(imageToken).toBe(151_655);
});

it.each([
  [null, 'config.json: model_type is undefined'],
  [{ ...json, model_type: 'llava' }, 'config.json: model_type is "llava"'],
  [{ ...json, vision_config: undefined }, 'config.json: vision_config is missing'],
  [{ ...json, image_token_id: 'x' }, 'config.json: image_token_id:'],
  [withText({ hidden_act: 'gelu' }), 'config.json: text_config: hidden_act is "gelu"'],
  [
    withText({ rope_parameters: { rope_type: 'dynamic' } }),
    'config.json: text_config: rope_parameters.rope_type is "dynamic"',
  ],
  [
    withText({ rope_parameters: { rope_type: 'default', mrope_section: [1, 1, 1] } }),
    'config.json: text_config: rope_parameters.mrope_section is [1,1,1]',
  ],
  [withVision({ hidden_act: 'gelu' }), 'config.json: vision_config: hidden_act:'],
  [withVision({ in_channels: 4 }), 'config.json: vision_config: in_channels:'],
  [withVision({ num_heads: 3 }), 'config.json: vision_config: hidden_size is 16 with num_heads 3'],
  [withVision({ window_size: 7 }), 'config.json: vision_config: window_size is 7'],
  [withVision({ out_hidden_size: 33 }), "config.json: vision_config.out_hidden_size is 33, but the decoder's"],
  [withVision({ rope_parameters: { rope_type: 'golden' } }), 'config.json: vision_config: rope_parameters.rope_type:'],
])('rejects %#: %s', (config, message) => {
  expect(() => parse(config)).toThrow(message);
});

it('rejects weights that lack a tensor of the encoder', async () => {
  writeFileSync(join(folder, 'config.json'), JSON.stringify(withVision({ depth: 4 })));
  await expect(readVisionModel(folder)).rejects.toThrow('no tensor visual.blocks.3.norm1.weight');
});

it('reads tensors with the prefixes of other versions', async () => {
  const before = await readVisionModel(folder);
  // The new names have the prefixes of transformers' modules; the header grows, the data stay the same.
  const bytes = readFileSync(join(folder, 'model.safetensors'));
  const size = Number(bytes.readBigUInt64LE(0));
  const header = bytes.subarray(8, 8 + size).toString();
  const renamed = Buffer.from(
    header.replace(/"visual\./g, '"model.visual.').replace(/"model\.(?!visual)/g, '"model.language_model.'),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(renamed.length));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, renamed, bytes.subarray(8 + size)]));
  const after = await readVisionModel(folder);
  expect(after.decoder.flat).toEqual(before.decoder.flat);
  expect(after.encoder.flat).toEqual(before.encoder.flat);
});

it('reads the image processor from either file', () => {
  expect(() => readProcessorOptions(folder)).toThrow(`${folder}: preprocessor_config.json is missing`);
  const options = { image_processor_type: 'Qwen2VLImageProcessor', min_pixels: 100, max_pixels: 200 };
  writeFileSync(join(folder, 'preprocessor_config.json'), JSON.stringify(options));
  expect(readProcessorOptions(folder)).toMatchObject({ minPixels: 100, maxPixels: 200 });
  writeFileSync(
    join(folder, 'processor_config.json'),
    JSON.stringify({ image_processor: { ...options, min_pixels: 5 } }),
  );
  expect(readProcessorOptions(folder)).toMatchObject({ minPixels: 5 });
  renameSync(join(folder, 'processor_config.json'), join(folder, 'other.json'));
  expect(readProcessorOptions(folder)).toMatchObject({ minPixels: 100 });
});
