// A grid of 2048 as a picture: one square per cell, whose colour and number show the tile.
import { Drawing } from '../api/drawing';
import type { Colour } from '../api/picture';

const cellPixels = 48;
const gap = 4;
const board: Colour = [187, 173, 160];
const empty: Colour = [205, 193, 180];
const dark: Colour = [119, 110, 101];
const light: Colour = [249, 246, 242];

/** Colours of the tiles 2, 4, 8, …; larger tiles have the last colour. */
const colours: readonly Colour[] = [
  [238, 228, 218],
  [237, 224, 200],
  [242, 177, 121],
  [245, 149, 99],
  [246, 124, 95],
  [246, 94, 59],
  [237, 207, 114],
  [237, 204, 97],
  [237, 200, 80],
  [237, 197, 63],
  [237, 194, 46],
  [60, 58, 50],
];

/** Side of the picture of a grid of `size` × `size` cells. */
export const gridPictureSide = (size: number): number => size * (cellPixels + gap) + gap;

/** Returns the picture of a square grid, row by row, as PNG. */
export function gridPicture(grid: readonly number[], size: number): Uint8Array {
  const step = cellPixels + gap;
  const drawing = new Drawing(gridPictureSide(size), gridPictureSide(size), board);
  grid.forEach((tile, at) => {
    const [x, y] = [gap + (at % size) * step, gap + Math.floor(at / size) * step];
    const colour = tile === 0 ? empty : colours[Math.min(Math.log2(tile), colours.length) - 1];
    drawing.rectangle(x, y, cellPixels, cellPixels, colour);
    if (tile > 0) drawing.number(tile, x, y, cellPixels, tile <= 4 ? dark : light, 0.8);
  });
  return drawing.png();
}
