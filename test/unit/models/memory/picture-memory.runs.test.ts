// The memory plan of vision-language models against measured processes whose sequences show a picture each, and the plan's
// rows for the encoder and its features.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { parameterSpecs } from '../../../../extension/models/decoder/decoder-config';
import { planMemory } from '../../../../extension/models/memory/memory-plan';
import type { PicturePlan, PlanInput } from '../../../../extension/models/memory/plan-input';
import { encoderSpecs } from '../../../../extension/models/vision/encoder-config';
import { gridTokens, pictureGrids } from '../../../../extension/models/vision/picture-grids';
import { parseProcessorOptions } from '../../../../extension/models/vision/processor-options';
import { parseVisionConfig } from '../../../../extension/models/vision/vision-config';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { pictureName } from '../../../../extension/node/picture-store';
import { measuredPeaks, passes, plain, uncollected } from '../../../support/memory-plans';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenName } from '../../../support/vision-models';

const folder = temporaryFolder();
const vocab = 1024;
const imageToken = vocab - 1;
const lora = { rank: 8, alpha: 8, dropout: 0, targets: 'all-linear' };

const text = (hidden: number, layers: number) => ({
  ...{ vocab_size: vocab, hidden_size: hidden, intermediate_size: 2 * hidden, num_hidden_layers: layers },
  ...{ num_attention_heads: hidden / 32, num_key_value_heads: hidden / 64, max_position_embeddings: 4096 },
});

/** A Qwen2.5-VL whose encoder has windows, and one layer of attention over the picture. */
const qwen = {
  model_type: 'qwen2_5_vl',
  ...{ image_token_id: imageToken, tie_word_embeddings: true },
  text_config: {
    ...text(128, 2),
    rope_parameters: { rope_type: 'default', rope_theta: 10_000, mrope_section: [4, 6, 6] },
  },
  vision_config: {
    ...{ depth: 4, hidden_size: 256, intermediate_size: 1024, num_heads: 16, out_hidden_size: 128 },
    fullatt_block_indexes: [3],
  },
};
const qwenProcessor = { image_processor_type: 'Qwen2VLImageProcessor', min_pixels: 3136, max_pixels: 1_003_520 };

/** A SmolVLM whose pictures are four tiles and the complete picture. */
const smol = {
  model_type: 'smolvlm',
  ...{ image_token_id: imageToken, tie_word_embeddings: true, scale_factor: 4 },
  text_config: { model_type: 'llama', ...text(128, 2) },
  vision_config: {
    ...{ hidden_size: 256, intermediate_size: 1024, num_hidden_layers: 4, num_attention_heads: 4 },
    ...{ patch_size: 14, image_size: 448 },
  },
};
const smolProcessor = {
  image_processor_type: 'SmolVLMImageProcessor',
  ...{ size: { longest_edge: 896 }, max_image_size: { longest_edge: 448 } },
};

interface Made {
  path: string;
  plan: PicturePlan;
  decoder: PlanInput['decoder'];
}

/** Writes a random model, and returns its plan for square pictures. */
async function makeModel(json: { model_type: string }, processor: object, side: number): Promise<Made> {
  const path = join(folder(), 'model');
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'config.json'), JSON.stringify(json));
  writeFileSync(join(path, 'preprocessor_config.json'), JSON.stringify(processor));
  const { decoder, encoder } = parseVisionConfig(json, path);
  const stream = new RandomStream(7);
  const tensors = [...parameterSpecs(decoder), ...encoderSpecs(encoder)].map(({ name, dims, stored = dims }) => ({
    name: goldenName(json.model_type, name),
    shape: stored,
    data: Float32Array.from({ length: dims.reduce((size, n) => size * n, 1) }, () => 0.02 * stream.normal()),
  }));
  await writeSafetensors(join(path, 'model.safetensors'), tensors);
  const grids = pictureGrids({ width: side, height: side }, encoder, parseProcessorOptions(processor, path));
  const tokens = gridTokens(grids, encoder);
  const plan: PicturePlan = { encoder, stored: 'F32', grids, tokens, perSequence: tokens, pictures: 4 };
  return { path, plan, decoder };
}

/** Writes pictures with random pixels under their names, and returns the names. */
function makePictures(to: string, count: number, side: number): string[] {
  mkdirSync(to, { recursive: true });
  const stream = new RandomStream(9);
  return Array.from({ length: count }, () => {
    const png = new PNG({ width: side, height: side });
    for (let i = 0; i < png.data.length; i++) png.data[i] = stream.integer(256);
    const bytes = PNG.sync.write(png);
    const name = pictureName(bytes);
    writeFileSync(join(to, name), bytes);
    return name;
  });
}

describe('the memory of a process that shows pictures', () => {
  test.each([
    ['Qwen2.5-VL, 1296 patches', qwen, qwenProcessor, 504, {}],
    ['SmolVLM, five tiles of 1024 patches', smol, smolProcessor, 896, {}],
    ['Qwen2.5-VL whose encoder is trained', qwen, qwenProcessor, 504, { trains: true }],
    ['SmolVLM whose encoder is trained, recomputed', smol, smolProcessor, 896, { trains: true, checkpointed: true }],
    [
      'Qwen2.5-VL with adapters on the encoder, and a reference policy',
      qwen,
      qwenProcessor,
      504,
      { trains: true, lora },
    ],
  ] as const)(
    'is as planned within a third, by the end of each phase: %s',
    async (
      _,
      json,
      processor,
      side,
      change: { trains?: boolean; checkpointed?: boolean; lora?: PlanInput['lora'] },
    ) => {
      const longest = 512;
      const { path, plan: pictures, decoder } = await makeModel(json, processor, side);
      const { trains = false, ...options } = change;
      const input: PlanInput = {
        ...{ ...plain, ...passes(2 * longest), longest, rollouts: 4, decoder, pictures, ...options },
        ...(trains && { trainedEncoder: pictures.encoder, reference: Boolean(options.lora) }),
        diagnosisTokens: longest,
      };
      expect(pictures.tokens).toBeGreaterThan(longest / 2);
      expect(pictures.tokens).toBeLessThan(longest - input.answer);
      const shown = { folder: join(folder(), 'pictures'), names: makePictures(join(folder(), 'pictures'), 4, side) };
      const held = await measuredPeaks(path, vocab, input, join(folder(), 'cache'), {
        ...{ ...shown, imageToken, tokens: pictures.tokens },
      });
      const { phases, rows } = planMemory(input);
      for (const { phase, held: planned } of phases) {
        const off = Math.abs(planned - held[phase]);
        expect(off, `${phase}: ${planned} planned, ${held[phase]} held`).toBeLessThan(held[phase] / 3 + uncollected);
      }
      // Without the encoder's pass, the plan would be far below the measured memory.
      const encoding = rows.find(({ what }) => what === 'encoder activations')!.bytes;
      const backward = rows.find(({ what }) => what === 'encoder activations with gradient')?.bytes ?? 0;
      expect(encoding + backward).toBeGreaterThan(held['policy update'] / 4);
      if (trains) expect(backward).toBeGreaterThan(encoding / 2);
    },
    240_000,
  );
});

test('the rows of pictures grow with the picture, and count the features that are kept once', async () => {
  const bytes = async (side: number, change: Partial<PicturePlan> = {}) => {
    const { plan, decoder } = await makeModel(qwen, qwenProcessor, side);
    const input = { ...plain, ...passes(512), longest: 512, rollouts: 4, decoder, pictures: { ...plan, ...change } };
    const { rows } = planMemory(input);
    return (what: string): number => rows.find(row => row.what === what)!.bytes;
  };
  const [small, large] = [await bytes(112), await bytes(504)];
  // Attention over the picture grows with the square of its patches.
  expect(large('encoder activations') / small('encoder activations')).toBeGreaterThan((504 / 112) ** 2);
  expect(small('kept image features')).toBe(4 * 16 * 128 * 4);
  expect((await bytes(112, { pictures: 1e9 }))('kept image features')).toBe(512 * 2 ** 20);
  expect(small('image features of a call')).toBe(2 * 4 * 16 * 128 * 4);
  expect(large('vision encoder')).toBe(small('vision encoder'));
});
