// Streaming weights: blocks become one file or shards, rounded on request, and a stream that fails leaves nothing.
import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { SafetensorsFile, Weights } from '../../../../extension/models/weights/safetensors';
import {
  streamModel,
  streamSafetensors,
  writeSafetensors,
} from '../../../../extension/models/weights/safetensors-writer';
import type { StreamedTensor } from '../../../../extension/models/weights/safetensors-writer';
import { failingFiles } from '../../../support/failing-files';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const path = (name: string): string => `${folder()}/${name}`;

/** A tensor in blocks of `size`; counts how often its blocks are requested. */
function streamed(name: string, shape: number[], data: Float32Array, size = 3): StreamedTensor & { asked: number } {
  const tensor = {
    name,
    shape,
    asked: 0,
    async *blocks(): AsyncGenerator<Float32Array> {
      tensor.asked += 1;
      for (let from = 0; from < data.length; from += size) yield await Promise.resolve(data.slice(from, from + size));
    },
  };
  return tensor;
}

const values = Float32Array.from({ length: 10 }, (_, i) => Math.fround(Math.sin(i + 1)));

test('a streamed F32 file equals one written at once', async () => {
  await writeSafetensors(path('at-once'), [
    { name: 'a', shape: [2, 5], data: values },
    { name: 'b', shape: [], data: Float32Array.of(3) },
  ]);
  await streamSafetensors(
    path('streamed'),
    [streamed('a', [2, 5], values), streamed('b', [], Float32Array.of(3))],
    'F32',
  );
  expect(readFileSync(path('streamed'))).toEqual(readFileSync(path('at-once')));
});

test.each([
  ['BF16', 2 ** -8],
  ['F16', 2 ** -11],
] as const)('%s is rounded, at half the size', async (dtype, error) => {
  await streamSafetensors(path('half'), [streamed('a', [10], values)], dtype);
  const file = await SafetensorsFile.open(path('half'));
  expect(file.tensors.get('a')).toMatchObject({ dtype, shape: [10] });
  expect(file.metadata).toEqual({ format: 'pt' });
  const back = await file.readFloats('a');
  await file.close();
  for (const [i, x] of back.entries()) expect(Math.abs(x - values[i]) / Math.abs(values[i])).toBeLessThanOrEqual(error);
  expect(back).not.toEqual(values);
});

test('shards are filled up to the limit; a larger tensor has its own shard', async () => {
  const ones = (n: number): Float32Array => new Float32Array(n).fill(n);
  const sizes = [2, 1, 7, 1, 2, 1];
  const tensors = sizes.map((n, i) => streamed(`t${i}`, [n], ones(n)));
  const names = await streamModel(folder(), tensors, 'F32', 16);
  const shard = (n: number): string => `model-0000${n}-of-00003.safetensors`;
  expect(names).toEqual([shard(1), shard(2), shard(3), 'model.safetensors.index.json']);
  expect(JSON.parse(readFileSync(path('model.safetensors.index.json'), 'utf8'))).toEqual({
    metadata: { total_size: 56 },
    weight_map: { t0: shard(1), t1: shard(1), t2: shard(2), t3: shard(3), t4: shard(3), t5: shard(3) },
  });
  expect(tensors.map(({ asked }) => asked)).toEqual([1, 1, 1, 1, 1, 1]);
  const weights = await Weights.open(folder());
  for (const [i, n] of sizes.entries()) expect(await weights.readFloats(`t${i}`)).toEqual(ones(n));
  await weights.close();
});

test('a model that fits is one file, and half precision counts with its own size', async () => {
  const tensors = [streamed('a', [10], values), streamed('b', [10], values)];
  expect(await streamModel(folder(), tensors, 'BF16', 40)).toEqual(['model.safetensors']);
  expect(readdirSync(folder())).toEqual(['model.safetensors']);
});

test('a stream that is too short or fails, or a full disk, leaves nothing', async () => {
  const write = (tensor: StreamedTensor, fs?: ReturnType<typeof failingFiles>): Promise<void> =>
    streamSafetensors(path('a'), [tensor], 'F32', fs);
  await expect(write(streamed('a', [11], values))).rejects.toThrow(/a has 10 elements for shape \[11\]/);
  const damaged: StreamedTensor = {
    name: 'a',
    shape: [10],
    async *blocks() {
      await Promise.resolve();
      throw new UserError('weights: b is damaged: get it anew');
    },
  };
  await expect(write(damaged)).rejects.toThrow(/^weights: b is damaged: get it anew$/);
  for (const at of [1, 2, 3, 4, 5, 6])
    await expect(write(streamed('a', [10], values), failingFiles({ calls: 0, at, after: 'works' }))).rejects.toThrow(
      /\(ENOSPC\): the disk is full/,
    );
  expect(readdirSync(folder())).toEqual([]);
  const doubled = [streamed('a', [10], values), streamed('a', [10], values)];
  await expect(streamSafetensors(path('a'), doubled, 'F32')).rejects.toThrow(/a is given twice/);
});
