// A cube as a picture: its six faces unfolded, up above and down below the row left, front, right, back.
import { Drawing } from '../api/drawing';
import type { Colour } from '../api/picture';
import type { Cube } from './cube';

const sticker = 20;
const gap = 2;
const background: Colour = [255, 255, 255];
const body: Colour = [20, 20, 20];

/** Colours by face, in the order U L F R B D: white, orange, green, red, blue, yellow. */
const colours: readonly Colour[] = [
  [245, 245, 245],
  [255, 140, 0],
  [0, 155, 72],
  [200, 20, 40],
  [0, 70, 173],
  [255, 213, 0],
];

/** Column and row of each face in the net. */
const places = [
  [1, 0],
  [0, 1],
  [1, 1],
  [2, 1],
  [3, 1],
  [1, 2],
] as const;

const face = 2 * sticker + 3 * gap;
const step = face + 4;

/** Size of the picture of a cube. */
export const cubePictureSize = { width: 4 * step - 4, height: 3 * step - 4 };

/** Returns the picture of a cube as PNG. */
export function cubePicture(cube: Cube): Uint8Array {
  const drawing = new Drawing(cubePictureSize.width, cubePictureSize.height, background);
  places.forEach(([column, row], i) => {
    drawing.rectangle(column * step, row * step, face, face, body);
    for (let at = 0; at < 4; at++) {
      const x = column * step + gap + (at % 2) * (sticker + gap);
      const y = row * step + gap + Math.floor(at / 2) * (sticker + gap);
      drawing.rectangle(x, y, sticker, sticker, colours[cube[4 * i + at]]);
    }
  });
  return drawing.png();
}
