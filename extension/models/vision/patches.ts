// The image processor of Qwen2-VL, Qwen2.5-VL and Qwen3-VL: resizes a picture to a whole number of merged patches and
// cuts it into patches. Bit-equal to transformers' Qwen2VLImageProcessor.
import { roundHalfToEven } from '../../../envs/api/python-round';
import { normalizedValues } from './normalize';
import { PictureError } from './picture';
import type { Picture } from './picture';
import type { PatchOptions } from './processor-options';
import { resize } from './resample';

/** Maximum ratio of the sides, as in transformers' smart_resize. */
const maxAspectRatio = 200;

export interface PatchGrid {
  /** Patches along each side; multiples of the merge size. */
  rows: number;
  columns: number;
}

export interface PicturePatches extends PatchGrid {
  /**
   * [rows · columns, 3 · temporalPatchSize · patchSize²]. The patches that are merged into one token are consecutive.
   * The elements of a patch are ordered by channel, repetition in time, row and column.
   */
  values: Float32Array;
}

/**
 * Returns the number of patches of a picture of the given size.
 * @throws PictureError if one side is more than 200 times as long as the other
 */
export function patchGrid(width: number, height: number, options: PatchOptions): PatchGrid {
  if (Math.max(width, height) / Math.min(width, height) > maxAspectRatio)
    throw new PictureError(
      `has ${width} × ${height} pixels, and the model accepts sides whose ratio is at most ${maxAspectRatio}: crop the picture`,
    );
  const { patchSize, mergeSize, minPixels, maxPixels } = options;
  const factor = patchSize * mergeSize;
  const side = (length: number, stretch: number, round: (x: number) => number): number =>
    round((length * stretch) / factor) * factor;
  let [h, w] = [height, width].map(length => side(length, 1, roundHalfToEven));
  if (h * w > maxPixels) {
    const shrink = Math.sqrt((height * width) / maxPixels);
    [h, w] = [height, width].map(length => Math.max(factor, Math.floor(length / shrink / factor) * factor));
  } else if (h * w < minPixels) {
    const stretch = Math.sqrt(minPixels / (height * width));
    [h, w] = [height, width].map(length => side(length, stretch, Math.ceil));
  }
  return { rows: h / patchSize, columns: w / patchSize };
}

/** Number of image tokens of a picture in the prompt. */
export const patchTokens = ({ rows, columns }: PatchGrid, { mergeSize }: PatchOptions): number =>
  (rows / mergeSize) * (columns / mergeSize);

/**
 * Returns the patches of a picture.
 * @param allocate returns the memory of `values`, which are all written
 * @throws PictureError if one side is more than 200 times as long as the other
 */
export function picturePatches(
  picture: Picture,
  options: PatchOptions,
  allocate = (length: number): Float32Array => new Float32Array(length),
): PicturePatches {
  const { patchSize, temporalPatchSize, mergeSize } = options;
  const { rows, columns } = patchGrid(picture.width, picture.height, options);
  const { width, pixels } = resize(picture, columns * patchSize, rows * patchSize, options.filter);
  const channels = normalizedValues(options);
  const size = 3 * temporalPatchSize * patchSize * patchSize;
  const values = allocate(rows * columns * size);
  let patch = 0;
  for (let blockRow = 0; blockRow < rows; blockRow += mergeSize)
    for (let blockColumn = 0; blockColumn < columns; blockColumn += mergeSize)
      for (let row = blockRow; row < blockRow + mergeSize; row++)
        for (let column = blockColumn; column < blockColumn + mergeSize; column++) {
          const into = values.subarray(patch * size, ++patch * size);
          copyPatch(pixels, (row * width + column) * patchSize, width, channels, into, options);
        }
  return { rows, columns, values };
}

/** Writes the patch whose first pixel is number `first` of a picture. */
function copyPatch(
  pixels: Uint8Array,
  first: number,
  width: number,
  channels: readonly Float32Array[],
  into: Float32Array,
  { patchSize, temporalPatchSize }: PatchOptions,
): void {
  const area = patchSize * patchSize;
  const plane = temporalPatchSize * area;
  const [red, green, blue] = channels;
  for (let y = 0, to = 0; y < patchSize; y++)
    for (let x = 0, at = (first + y * width) * 3; x < patchSize; x++, at += 3, to++) {
      into[to] = red[pixels[at]];
      into[plane + to] = green[pixels[at + 1]];
      into[2 * plane + to] = blue[pixels[at + 2]];
    }
  for (let from = 0; from < into.length; from += plane)
    for (let time = 1; time < temporalPatchSize; time++) into.copyWithin(from + time * area, from, from + area);
}
