// Configurations and folders of vision-language models: keys of older versions, and what is rejected, by its name.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseVisionConfig } from '../../../../extension/models/vision/vision-config';
import { readProcessorOptions } from '../../../../extension/models/vision/processor-folder';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';

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

const smol = JSON.parse(readFileSync('test/golden/vision/smolvlm/config.json', 'utf8')) as typeof json;

it('has the defaults of transformers for Idefics3', () => {
  const { decoder, encoder, imageToken } = parse({
    model_type: 'idefics3',
    text_config: { vocab_size: 128_258 },
    vision_config: { patch_size: 14 },
  });
  expect(decoder).toMatchObject({ family: 'llama', hiddenSize: 4096, tiedHead: false });
  expect(encoder).toMatchObject({ layers: 12, hiddenSize: 1152, heads: 16, side: 16, mergeSize: 2, outputSize: 4096 });
  expect(imageToken).toBe(128_257);
});

it.each([
  [{ vision_config: { ...smol.vision_config, hidden_act: 'gelu' } }, 'config.json: vision_config: hidden_act:'],
  [{ vision_config: { ...smol.vision_config, num_attention_heads: 3 } }, 'vision_config: hidden_size is 16'],
  [{ scale_factor: 4 }, 'vision_config: image_size is 26 with patch_size 4'],
  [{ image_token_id: 61 }, 'config.json: image_token_id is 61, but the vocabulary has 61 tokens'],
  [{ text_config: { ...smol.text_config, model_type: 'phi' } }, 'config.json: text_config: model_type is "phi"'],
])('rejects of SmolVLM %#: %s', (keys, message) => {
  expect(() => parse({ ...smol, ...keys })).toThrow(message);
});

const qwen3 = JSON.parse(readFileSync('test/golden/vision/qwen3_vl/config.json', 'utf8')) as typeof json;

it('has the defaults of transformers for Qwen3-VL', () => {
  const { decoder, encoder } = parse({
    model_type: 'qwen3_vl',
    text_config: {},
    vision_config: { out_hidden_size: 4096 },
  });
  expect(decoder).toMatchObject({ family: 'qwen3', headSize: 128, ropeTheta: 500_000, deepFeatures: 3, qkNorm: true });
  const axes = decoder.rotaryAxes!;
  expect(axes.slice(0, 7)).toEqual([0, 1, 2, 0, 1, 2, 0]);
  // Sections of 24, 20 and 20 elements.
  expect([0, 1, 2].map(axis => axes.filter(of => of === axis).length)).toEqual([24, 20, 20]);
  expect(encoder).toMatchObject({
    layers: 27,
    side: 48,
    deepLayers: [8, 16, 24],
    patchSize: 16,
    intermediateSize: 4304,
  });
});

it.each([
  [{ deepstack_visual_indexes: [0, 0] }, 'vision_config: deepstack_visual_indexes is [0,0]'],
  [{ deepstack_visual_indexes: [3] }, 'vision_config: deepstack_visual_indexes is [3]'],
  [{ deepstack_visual_indexes: [0, 1, 2] }, 'fewer than the decoder has (3 layers)'],
  [{ hidden_act: 'silu' }, 'config.json: vision_config: hidden_act:'],
  [{ num_heads: 3 }, 'vision_config: hidden_size is 16 with num_heads 3'],
])('rejects of Qwen3-VL %j', (keys, message) => {
  expect(() => parse({ ...qwen3, vision_config: { ...qwen3.vision_config, ...keys } })).toThrow(message);
});

it('rejects Qwen3-VL with axes that do not alternate', () => {
  const rope = { ...(qwen3.text_config.rope_parameters as Json), mrope_interleaved: false };
  expect(() => parse({ ...qwen3, text_config: { ...qwen3.text_config, rope_parameters: rope } })).toThrow(
    'config.json: text_config: rope_parameters.mrope_interleaved is false',
  );
});

describe('the image processor', () => {
  const { encoder } = parse(json);
  const options = { image_processor_type: 'Qwen2VLImageProcessor', patch_size: 4, min_pixels: 100, max_pixels: 200 };
  const write = (name: string, content: unknown): void => writeFileSync(join(folder, name), JSON.stringify(content));

  it('is read from either file', () => {
    expect(() => readProcessorOptions(folder, encoder)).toThrow(`${folder}: preprocessor_config.json is missing`);
    write('preprocessor_config.json', options);
    expect(readProcessorOptions(folder, encoder)).toMatchObject({ minPixels: 100, maxPixels: 200 });
    write('processor_config.json', { image_processor: { ...options, min_pixels: 5 } });
    expect(readProcessorOptions(folder, encoder)).toMatchObject({ minPixels: 5 });
    write('processor_config.json', { image_seq_len: 4 });
    expect(readProcessorOptions(folder, encoder)).toMatchObject({ minPixels: 100 });
  });

  it.each([
    [{ ...options, patch_size: 14 }, 'patch_size is 14, but the encoder in config.json requires 4'],
    [{ ...options, merge_size: 3 }, 'merge_size is 3, but the encoder in config.json requires 2'],
    [{ image_processor_type: 'SmolVLMImageProcessor' }, 'image_processor_type is tiles, but the encoder'],
  ])('is rejected if it does not fit the encoder: %j', (content, message) => {
    write('preprocessor_config.json', content);
    expect(() => readProcessorOptions(folder, encoder)).toThrow(message);
  });

  it('is rejected if its tiles do not fit the encoder', () => {
    write('preprocessor_config.json', { image_processor_type: 'SmolVLMImageProcessor' });
    expect(() => readProcessorOptions(folder, parse(smol).encoder)).toThrow(
      'max_image_size.longest_edge is 364, but the encoder in config.json requires 26',
    );
  });
});
