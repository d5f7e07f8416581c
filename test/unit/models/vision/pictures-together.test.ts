// Narrow encoders encode pictures of one size together, and each picture's features have the bits that it has alone.
// Pictures of other sizes, pictures of one merged square and pictures of other encoders are alone.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { describe, expect, it, test, vi } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { encoderSpecs } from '../../../../extension/models/vision/encoder-config';
import { mapEncoder } from '../../../../extension/models/vision/mapped-encoder';
import type { PicturePatches } from '../../../../extension/models/vision/patches';
import { mostTogether, PictureEncoder } from '../../../../extension/models/vision/picture-encoder';
import { PictureFeatures } from '../../../../extension/models/vision/picture-features';
import { readProcessorOptions } from '../../../../extension/models/vision/processor-folder';
import { patchWidth } from '../../../../extension/models/vision/encoder-shape';
import { parseVisionConfig } from '../../../../extension/models/vision/vision-config';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { Weights, initialize } from '../../../../extension/models/weights/weights';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const bits = (values: Float32Array): Uint32Array => new Uint32Array(values.slice().buffer);

describe.each(['qwen2_5_vl', 'qwen3_vl'])('%s', family => {
  it.each([
    [2, 4],
    [4, 6],
    [8, 8],
    [10, 14],
  ])('%i × %i patches have the same features in every group', async (rows, columns) => {
    const golden = JSON.parse(readFileSync(`test/golden/vision/${family}/config.json`, 'utf8')) as {
      vision_config: object;
    };
    const vision_config = { ...golden.vision_config, hidden_size: 48, intermediate_size: 80, num_heads: 3 };
    const { encoder } = parseVisionConfig({ ...golden, vision_config }, family);
    expect(mostTogether(encoder)).toBe(8);
    const specs = encoderSpecs(encoder);
    const weights = new Weights(specs);
    initialize(weights, new RandomStream(1), 0.2);
    const session = { threads: 2 };
    const network = { config: encoder, plan: { specs, source: () => ({ kind: 'input' }) as const } };
    const eyes = new PictureEncoder(network, new HostParameters(weights, session), session);
    const stream = new RandomStream(2);
    const size = rows * columns * patchWidth(encoder);
    const pictures = Array.from({ length: 8 }, (): PicturePatches => {
      const values = Float32Array.from({ length: size }, () => 2 * stream.uniform() - 1);
      return { rows, columns, values };
    });
    const encoded = async (parts: readonly PicturePatches[]) =>
      bits((await eyes.features(parts)).values.data as Float32Array);
    const alone: Uint32Array[] = [];
    for (const picture of pictures) alone.push(await encoded([picture]));
    for (let first = 0; first < 8; first++)
      for (const length of [2, 3, 8 - first].filter(length => first + length <= 8)) {
        const found = await encoded(pictures.slice(first, first + length));
        for (let i = 0, at = 0; i < length; at += alone[first + i++].length)
          expect(found.subarray(at, at + alone[first + i].length)).toEqual(alone[first + i]);
      }
    await eyes.release();
  });
});

test.each([
  ['a wide encoder', { hiddenSize: 256, intermediateSize: 64, mergeSize: 2 }],
  ['activations that vectors do not divide', { hiddenSize: 16, intermediateSize: 20, mergeSize: 2 }],
  ['squares of other numbers of patches', { hiddenSize: 16, intermediateSize: 64, mergeSize: 3 }],
])('%s encodes each picture alone', (_, shape) => {
  const { encoder } = parseVisionConfig(
    JSON.parse(readFileSync('test/golden/vision/qwen3_vl/config.json', 'utf8')),
    'config',
  );
  expect(mostTogether({ ...encoder, ...shape })).toBe(1);
});

test('pictures of one size that are asked for together are encoded in one call', async () => {
  const modelFolder = 'media/models/ragen-tiny-vision';
  const { config, network } = await mapEncoder(modelFolder);
  const encoder = new PictureEncoder(network, undefined, { threads: 1 });
  const calls = vi.spyOn(encoder, 'features');
  const at = folder();
  const draw = (name: string, side: number, grey: number): void => {
    const png = new PNG({ width: side, height: side });
    png.data.fill(grey);
    writeFileSync(join(at, name), PNG.sync.write(png));
  };
  const sides: Record<string, number> = { a: 112, b: 112, c: 56, d: 112, e: 28, f: 28 };
  Object.entries(sides).forEach(([name, side], i) => draw(name, side, 30 * i));
  copyFileSync(join(at, 'a'), join(at, 'g'));
  const features = () => new PictureFeatures(at, config, readProcessorOptions(modelFolder, config.encoder), encoder);
  const row = (...names: string[]) => {
    const tokens = names.map(picture => ({ picture, count: ((sides[picture] ?? 112) / 28) ** 2 }));
    let first = 0;
    const shows = tokens.map(({ picture, count }) => ({ at: (first += count) - count, picture }));
    return { ids: Array<number>(first).fill(config.imageToken), shows };
  };
  const together = features();
  const [found, other] = await together.ofRows([row('a', 'b', 'c'), row('d', 'e', 'f', 'g')], [0, 0]);
  // Sizes in the order of the questions: a and b; c; d; e and f, of one square each; g.
  expect(calls.mock.calls.map(([parts]) => parts.length)).toEqual([2, 1, 1, 1, 1, 1]);
  for (const [rows, names] of [
    [found, ['a', 'b', 'c']],
    [other, ['d', 'e', 'f', 'g']],
  ] as const) {
    const single: number[] = [];
    for (const name of names) single.push(...(await features().ofRows([row(name)], [0]))[0]!.values);
    expect(bits(rows!.values)).toEqual(bits(Float32Array.from(single)));
  }
  await expect(together.ofRows([row('a', 'lost', 'b')], [0])).rejects.toThrow('lost cannot be read');
  calls.mockClear();
  await together.ofRows([row('a', 'b')], [0]);
  expect(calls).not.toHaveBeenCalled();
});
