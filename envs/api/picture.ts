// Draws a board as a PNG with one coloured square per cell. Equal boards give equal pixels. The bytes of the PNG file
// may differ between versions of zlib, so compare decoded pictures.
import { PNG } from 'pngjs';

export type Colour = readonly [red: number, green: number, blue: number];

/**
 * Returns an RGB PNG of a board.
 * @param colours colour of each cell, row by row, values 0 to 255
 * @param columns cells in a row
 * @param pixels side of a cell
 */
export function boardPicture(colours: readonly Colour[], columns: number, pixels: number): Uint8Array {
  const width = columns * pixels;
  const height = (colours.length / columns) * pixels;
  const picture = new PNG({ width, height, colorType: 2 });
  for (let y = 0, to = 0; y < height; y++)
    for (let x = 0; x < width; x++, to += 4) {
      const [red, green, blue] = colours[Math.floor(y / pixels) * columns + Math.floor(x / pixels)];
      picture.data[to] = red;
      picture.data[to + 1] = green;
      picture.data[to + 2] = blue;
      picture.data[to + 3] = 255;
    }
  const { buffer, byteOffset, byteLength } = PNG.sync.write(picture, { colorType: 2 });
  return new Uint8Array(buffer, byteOffset, byteLength);
}
