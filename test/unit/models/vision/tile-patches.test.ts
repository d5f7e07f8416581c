// Tiles to patches: the order of patches and of their elements, and pixels beyond the last complete patch.
import { expect, it } from 'vitest';
import { parseSiglip } from '../../../../extension/models/vision/siglip-config';
import { tilePatches } from '../../../../extension/models/vision/tile-patches';

const config = parseSiglip(
  { hidden_size: 4, num_attention_heads: 1, image_size: 5, patch_size: 1 },
  'vision_config',
  1,
  8,
);

it('orders patches by merged square, and elements by channel, row and column', () => {
  const c = parseSiglip(
    { hidden_size: 4, num_attention_heads: 1, image_size: 9, patch_size: 2 },
    'vision_config',
    2,
    8,
  );
  // The value of a pixel is 100 · channel + 10 · row + column.
  const values = Float32Array.from(
    { length: 3 * 81 },
    (_, i) => 100 * Math.floor(i / 81) + 10 * Math.floor((i % 81) / 9) + (i % 9),
  );
  const [{ rows, columns, values: patches }] = tilePatches({ count: 1, values }, c);
  expect([rows, columns]).toEqual([4, 4]);
  const patch = (i: number): number[] => [...patches.subarray(i * 12, (i + 1) * 12)];
  expect(patch(1)).toEqual([2, 3, 12, 13, 102, 103, 112, 113, 202, 203, 212, 213]);
  expect(patch(2)[0]).toBe(20);
  expect(patch(4)[0]).toBe(4);
  expect(patch(15)[11]).toBe(277);
});

it('rejects tiles of another size', () => {
  expect(() => tilePatches({ count: 2, values: new Float32Array(75) }, config)).toThrow(
    'tiles: 75 values are not 2 tiles of 5 × 5 pixels',
  );
});
