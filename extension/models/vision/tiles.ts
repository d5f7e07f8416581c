// The image processor of Idefics3 and SmolVLM: resizes a picture to a whole number of square tiles, cuts it into these
// tiles and appends the complete picture as one more tile. Also returns the text that stands for a picture in the
// prompt. Bit-equal to transformers' Idefics3ImageProcessor and Idefics3Processor.
import { normalizedValues } from './normalize';
import type { Picture } from './picture';
import type { TileOptions } from './processor-options';
import { resize } from './resample';

export interface TileGrid {
  /** Tiles along each side; both are 0 if the picture is one tile. */
  rows: number;
  columns: number;
}

export interface PictureTiles extends TileGrid {
  /** Number of tiles, including the complete picture, which is the last. */
  count: number;
  /** [count, 3, tileSize, tileSize] */
  values: Float32Array;
}

interface Size {
  width: number;
  height: number;
}

/** Size after the first resize: the longer side is `longestEdge`, and the shorter side is even. */
function fitted({ width, height }: Size, longestEdge: number): Size {
  const ratio = width / height;
  const even = (x: number): number => Math.max(1, x + (x % 2));
  return width >= height
    ? { width: longestEdge, height: even(Math.trunc(longestEdge / ratio)) }
    : { width: even(Math.trunc(longestEdge * ratio)), height: longestEdge };
}

/** Size after the second resize: both sides are multiples of the tile's. */
function tiled({ width, height }: Size, tile: number): Size {
  const ratio = width / height;
  const whole = (x: number): number => Math.ceil(x / tile) * tile;
  if (width >= height) return { width: whole(width), height: whole(Math.trunc(whole(width) / ratio)) };
  return { width: whole(Math.trunc(whole(height) * ratio)), height: whole(height) };
}

/** Returns the number of tiles of a picture of the given size. */
export function tileGrid(size: Size, { isSplit, longestEdge, tileSize }: TileOptions): TileGrid {
  if (!isSplit) return { rows: 0, columns: 0 };
  const { width, height } = tiled(fitted(size, longestEdge), tileSize);
  if (width <= tileSize && height <= tileSize) return { rows: 0, columns: 0 };
  return { rows: height / tileSize, columns: width / tileSize };
}

/** Returns the tiles of a picture. */
export function pictureTiles(picture: Picture, options: TileOptions): PictureTiles {
  const { tileSize, filter, longestEdge, isSplit } = options;
  const to = (from: Picture, { width, height }: Size): Picture => resize(from, width, height, filter);
  const square = { width: tileSize, height: tileSize };
  const fit = to(picture, fitted(picture, longestEdge));
  const large = isSplit ? to(fit, tiled(fit, tileSize)) : fit;
  const { rows, columns } = tileGrid(picture, options);
  const count = rows * columns + 1;
  const channels = normalizedValues(options);
  const values = new Float32Array(count * 3 * tileSize * tileSize);
  let at = 0;
  const copyTile = ({ width, pixels }: Picture, top: number, left: number): void => {
    channels.forEach((floats, channel) => {
      for (let y = top; y < top + tileSize; y++)
        for (let x = left; x < left + tileSize; x++) values[at++] = floats[pixels[(y * width + x) * 3 + channel]];
    });
  };
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) copyTile(large, row * tileSize, column * tileSize);
  copyTile(to(large, square), 0, 0);
  return { rows, columns, count, values };
}

/** Returns the text that replaces `<image>` in the prompt; each tile has `tokens` image tokens. */
export function tilePrompt({ rows, columns }: TileGrid, tokens: number): string {
  const border = '<fake_token_around_image>';
  const part = (mark: string): string => `${border}${mark}${'<image>'.repeat(tokens)}`;
  const complete = `${part('<global-img>')}${border}`;
  if (rows === 0) return complete;
  const lines = Array.from(
    { length: rows },
    (_, row) =>
      `${Array.from({ length: columns }, (__, column) => part(`<row_${row + 1}_col_${column + 1}>`)).join('')}\n`,
  );
  return `${lines.join('')}\n${complete}`;
}
