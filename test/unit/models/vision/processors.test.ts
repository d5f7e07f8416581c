// Picture processors against transformers' default processors (test/golden/make/vision_images.py): grids, prompts and
// pixel values, bit by bit, of pictures of odd sizes and of every
// PNG colour type and several kinds of JPEG.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PictureError } from '../../../../extension/models/vision/picture';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { patchTokens, picturePatches } from '../../../../extension/models/vision/patches';
import { parseProcessorOptions } from '../../../../extension/models/vision/processor-options';
import { pictureTiles, tilePrompt } from '../../../../extension/models/vision/tiles';

interface Case {
  processor: string;
  picture: string;
  refused?: string;
  rows: number;
  columns: number;
  tokens?: number;
  count?: number;
  prompt?: string;
  length: number;
  sha256: string;
}

const folder = 'test/golden/vision';
const { processors, cases } = JSON.parse(readFileSync(join(folder, 'processors.json'), 'utf8')) as {
  processors: Record<string, unknown>;
  cases: Case[];
};
const sha256 = (values: Float32Array): string =>
  createHash('sha256')
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest('hex');

describe.each(Object.keys(processors))('%s', name => {
  const options = parseProcessorOptions(processors[name], 'preprocessor_config.json');

  it.each(cases.filter(({ processor }) => processor === name))('gives the pixels of $picture', async golden => {
    const picture = await decodePicture(readFileSync(join(folder, 'pictures', golden.picture)));
    if (options.kind === 'patches') {
      if (golden.refused !== undefined) {
        expect(() => picturePatches(picture, options)).toThrow(PictureError);
        return;
      }
      const patches = picturePatches(picture, options);
      expect(patches).toMatchObject({ rows: golden.rows, columns: golden.columns });
      expect(patchTokens(patches, options)).toBe(golden.tokens);
      expect(patches.values.length).toBe(golden.length);
      expect(sha256(patches.values)).toBe(golden.sha256);
    } else {
      const tiles = pictureTiles(picture, options);
      expect(tiles).toMatchObject({ rows: golden.rows, columns: golden.columns, count: golden.count });
      expect(tilePrompt(tiles, 2)).toBe(golden.prompt);
      expect(tiles.values.length).toBe(golden.length);
      expect(sha256(tiles.values)).toBe(golden.sha256);
    }
  });
});
