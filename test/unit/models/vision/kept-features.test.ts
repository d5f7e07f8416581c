// Which pictures' features are kept: the most recently used ones up to the limit; a failed picture is encoded again. The
// encoder is a substitute that counts its calls.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { float32 } from '../../../../extension/engine/session/session';
import type { PicturePatches } from '../../../../extension/models/vision/patches';
import { PictureFeatures } from '../../../../extension/models/vision/picture-features';
import type { VisionConfig } from '../../../../extension/models/vision/vision-config';
import { partial } from '../../../support/partial';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const names = ['a', 'b', 'c', 'd'];
const width = 8;
/** Features of each picture: 16 × 16 pixels in squares of 8 × 8. */
const count = 4;
const imageToken = 7;

function opened(keptPictures: number) {
  for (const name of names) copyFileSync('test/golden/vision/pictures/board.png', join(folder(), name));
  const config = partial<VisionConfig>({
    imageToken,
    decoder: {},
    encoder: { kind: 'qwen2_5_vl', mergeSize: 2, outputSize: width },
  });
  const pixels = { rescaleFactor: 1, mean: [0, 0, 0], std: [1, 1, 1], minPixels: 256, maxPixels: 256 } as const;
  const sizes = { patchSize: 4, temporalPatchSize: 2, mergeSize: 2 } as const;
  const state = { encodings: 0, fails: false, running: 0, most: 0 };
  const encoder = {
    features: async (parts: readonly PicturePatches[]) => {
      state.encodings++;
      state.most = Math.max(state.most, ++state.running);
      await setImmediate();
      state.running--;
      if (state.fails) throw new Error('no memory');
      const features = parts.reduce((sum, { rows, columns }) => sum + (rows * columns) / 4, 0);
      return { values: float32(new Float32Array(features * width), [features, width]) };
    },
    addGradient: () => Promise.resolve(),
  };
  const options = { kind: 'patches', filter: 'bicubic', ...pixels, ...sizes } as const;
  const limit = keptPictures * count * width * 4;
  const features = new PictureFeatures(folder(), config, options, encoder, undefined, limit);
  const row = (picture: string) => ({ ids: Array<number>(count).fill(imageToken), shows: [{ at: 0, picture }] });
  /** Asks for pictures at the same time, and returns how many were encoded. */
  const ask = async (...asked: string[]): Promise<number> => {
    const before = state.encodings;
    const found = await features.ofRows(
      asked.map(row),
      asked.map(() => 0),
    );
    for (const each of found) expect(each!.values).toHaveLength(count * width);
    return state.encodings - before;
  };
  return { ask, state };
}

test('at the limit, only the least recently used pictures are dropped', async () => {
  const { ask } = opened(2);
  for (const name of ['a', 'b', 'a', 'c']) await ask(name);
  expect(await ask('c')).toBe(0);
  expect(await ask('a')).toBe(0);
  expect(await ask('b')).toBe(1);
});

test('pictures that are encoded at the same time are counted', async () => {
  const { ask } = opened(2);
  expect(await ask('a', 'b', 'c', 'd')).toBe(4);
  expect(await ask('c', 'd')).toBe(0);
  expect(await ask('a', 'b')).toBe(2);
  expect(await ask('a', 'b')).toBe(0);
});

test('one picture at a time is encoded', async () => {
  const { ask, state } = opened(2);
  expect(await ask('a', 'b', 'c', 'd')).toBe(4);
  expect(state.most).toBe(1);
});

test('a picture that could not be encoded is encoded again', async () => {
  const { ask, state } = opened(2);
  state.fails = true;
  await expect(ask('a')).rejects.toThrow('no memory');
  state.fails = false;
  expect(await ask('a')).toBe(1);
  expect(await ask('a')).toBe(0);
});
