// Cuts tiles of Idefics3 and SmolVLM into the patches that their encoder reads.
import type { PicturePatches } from './patches';
import type { SiglipConfig } from './siglip-config';
import type { PictureTiles } from './tiles';

/**
 * Returns the patches of each tile. The patches that are merged into one image feature are consecutive; the elements of
 * a patch are ordered by channel, row and column. Pixels beyond the last complete patch are not used, as in transformers.
 * @throws if the tiles do not have the size that the encoder reads
 */
export function tilePatches(
  { count, values }: Pick<PictureTiles, 'count' | 'values'>,
  c: SiglipConfig,
): PicturePatches[] {
  const { imageSize, patchSize, side, mergeSize } = c;
  if (values.length !== count * 3 * imageSize ** 2)
    throw new Error(`tiles: ${values.length} values are not ${count} tiles of ${imageSize} × ${imageSize} pixels`);
  return Array.from({ length: count }, (_, tile) => {
    const patches = new Float32Array(side * side * 3 * patchSize ** 2);
    let to = 0;
    const copyPatch = (row: number, column: number): void => {
      for (let channel = 0; channel < 3; channel++)
        for (let y = row * patchSize; y < (row + 1) * patchSize; y++, to += patchSize) {
          const from = ((tile * 3 + channel) * imageSize + y) * imageSize + column * patchSize;
          patches.set(values.subarray(from, from + patchSize), to);
        }
    };
    for (let top = 0; top < side; top += mergeSize)
      for (let left = 0; left < side; left += mergeSize)
        for (let row = top; row < top + mergeSize; row++)
          for (let column = left; column < left + mergeSize; column++) copyPatch(row, column);
    return { rows: side, columns: side, values: patches };
  });
}
