// A small raster drawing for pictures of states: filled rectangles, discs, numbers and images, encoded as a PNG. Equal
// calls give equal pixels. There is no smoothing, so a shape has exactly the colours that it was drawn with. Coordinates
// are pixels from the top left; parts outside the drawing are not drawn.
import { PNG } from 'pngjs';
import type { Colour } from './picture';
import type { Sprite } from './sprite';

/** The digits as 3 × 5 pixels, row by row. */
const digits = [
  '111101101101111',
  '010110010010111',
  '111001111100111',
  '111001111001111',
  '101101111001001',
  '111100111001111',
  '111100111101111',
  '111001010010010',
  '111101111101111',
  '111101111001111',
];

/** A channel of a pixel after an image's pixel is drawn over it: the value of pygame 2.6 for surfaces without alpha. */
const blended = (under: number, over: number, alpha: number): number =>
  alpha === 255 ? over : under + (((over - under) * alpha + over) >> 8);

/** Columns and rows of a digit, and the columns from one digit to the next. */
const [digitColumns, digitRows, digitStep] = [3, 5, 4];

export class Drawing {
  private readonly picture: PNG;

  /** Creates a drawing that is filled with a colour. */
  constructor(
    readonly width: number,
    readonly height: number,
    background: Colour,
  ) {
    this.picture = new PNG({ width, height, colorType: 2 });
    this.rectangle(0, 0, width, height, background);
  }

  /** Fills the rectangle with its upper left corner at (x, y). */
  rectangle(x: number, y: number, width: number, height: number, colour: Colour): void {
    const [left, top] = [Math.max(0, Math.round(x)), Math.max(0, Math.round(y))];
    const [right, bottom] = [
      Math.min(this.width, Math.round(x + width)),
      Math.min(this.height, Math.round(y + height)),
    ];
    for (let row = top; row < bottom; row++)
      for (let column = left; column < right; column++) this.set(column, row, colour);
  }

  /** Fills the pixels whose centres are within an ellipse around (x, y). */
  disc(x: number, y: number, radius: number, colour: Colour, height = radius): void {
    const [top, bottom] = [Math.max(0, Math.floor(y - height)), Math.min(this.height, Math.ceil(y + height))];
    const [left, right] = [Math.max(0, Math.floor(x - radius)), Math.min(this.width, Math.ceil(x + radius))];
    for (let row = top; row < bottom; row++)
      for (let column = left; column < right; column++)
        if (((column + 0.5 - x) / radius) ** 2 + ((row + 0.5 - y) / height) ** 2 <= 1) this.set(column, row, colour);
  }

  /**
   * Writes a whole number, centred in a square. It fills at most `share` of the side.
   * @throws RangeError if the number is negative or no whole number
   */
  number(value: number, x: number, y: number, side: number, colour: Colour, share = 0.7): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no whole number from 0`);
    const text = String(value);
    const columns = digitStep * text.length - 1;
    const pixel = Math.max(1, Math.floor((side * share) / Math.max(columns, digitRows)));
    const left = Math.round(x + (side - columns * pixel) / 2);
    const top = Math.round(y + (side - digitRows * pixel) / 2);
    [...text].forEach((digit, i) =>
      [...digits[Number(digit)]].forEach((set, at) => {
        if (set !== '1') return;
        const column = i * digitStep + (at % digitColumns);
        const row = Math.floor(at / digitColumns);
        this.rectangle(left + column * pixel, top + row * pixel, pixel, pixel, colour);
      }),
    );
  }

  /** Draws an image with its upper left corner at (x, y), which are whole numbers. */
  image({ width, height, data }: Sprite, x: number, y: number): void {
    const to = this.picture.data;
    for (let row = Math.max(0, -y); row < Math.min(height, this.height - y); row++)
      for (let column = Math.max(0, -x); column < Math.min(width, this.width - x); column++) {
        const from = 4 * (row * width + column);
        if (data[from + 3] === 0) continue; // transparent
        const at = 4 * ((y + row) * this.width + x + column);
        for (let channel = 0; channel < 3; channel++)
          to[at + channel] = blended(to[at + channel], data[from + channel], data[from + 3]);
      }
  }

  /** Returns the drawing as an RGB PNG. */
  png(): Uint8Array {
    const { buffer, byteOffset, byteLength } = PNG.sync.write(this.picture, { colorType: 2 });
    return new Uint8Array(buffer, byteOffset, byteLength);
  }

  private set(column: number, row: number, [red, green, blue]: Colour): void {
    const { data } = this.picture;
    const at = 4 * (row * this.width + column);
    data[at] = red;
    data[at + 1] = green;
    data[at + 2] = blue;
    data[at + 3] = 255;
  }
}
