// A frozen lake as a picture, laid out as Gymnasium's: ice with the start, holes, the goal as a present, and the player.
// The tiles are drawn here; Gymnasium's own images are not used.
import { DrawnPictures } from '../api/drawn-pictures';
import { Drawing } from '../api/drawing';
import type { Colour } from '../api/picture';
import { goal, hole, type Lake } from './lake';

/** Side of a tile in pixels: two patches of Qwen's vision encoders. */
export const tilePixels = 28;

const ice: Colour = [214, 234, 245];
const edge: Colour = [150, 180, 205];
const shine: Colour = [240, 249, 253];
const water: Colour = [25, 55, 105];
const rim: Colour = [95, 140, 185];
const present: Colour = [205, 40, 50];
const ribbon: Colour = [250, 210, 60];
const wood: Colour = [150, 105, 60];
const coat: Colour = [45, 140, 60];
const skin: Colour = [245, 200, 160];

/** Side of the picture of a lake of `size` × `size` tiles. */
export const lakePictureSide = (size: number): number => size * tilePixels;

const drawn = new DrawnPictures();

/** Returns the picture of a lake with the player on `cell`, as PNG. */
export const lakePicture = (lake: Lake, cell: number): Uint8Array =>
  drawn.get(`${lake.tiles.join('')} ${lake.start} ${cell}`, () => drawPicture(lake, cell));

function drawPicture({ size, tiles, start }: Lake, cell: number): Uint8Array {
  const side = tilePixels;
  const drawing = new Drawing(lakePictureSide(size), lakePictureSide(size), edge);
  tiles.forEach((tile, at) => {
    const [x, y] = [(at % size) * side, Math.floor(at / size) * side];
    drawing.rectangle(x + 1, y + 1, side - 2, side - 2, ice);
    for (let i = 0; i < 3; i++) drawing.rectangle(x + 5 + 5 * i, y + 5 + 2 * i, 4, 1, shine);
    if (at === start) drawing.rectangle(x + 4, y + side - 7, side - 8, 3, wood);
    if (tile === hole) {
      drawing.disc(x + side / 2, y + side / 2, side * 0.42, rim);
      drawing.disc(x + side / 2, y + side / 2, side * 0.34, water);
    }
    if (tile === goal) {
      drawing.rectangle(x + 6, y + 10, side - 12, side - 15, present);
      drawing.rectangle(x + side / 2 - 2, y + 10, 4, side - 15, ribbon);
      drawing.rectangle(x + 6, y + 15, side - 12, 3, ribbon);
      drawing.disc(x + side / 2 - 3, y + 8, 3, ribbon, 2.5);
      drawing.disc(x + side / 2 + 3, y + 8, 3, ribbon, 2.5);
    }
    if (at === cell) drawPlayer(drawing, x, y, tile);
  });
  return drawing.png();
}

/** Draws the player: on ice as a figure, in a hole only the head, on the goal small beside the present. */
function drawPlayer(drawing: Drawing, x: number, y: number, tile: number): void {
  const middle = x + tilePixels / 2;
  if (tile === hole) return drawing.disc(middle, y + tilePixels / 2, 5, skin);
  const at = tile === goal ? x + 5 : middle;
  drawing.rectangle(at - 4, y + 12, 8, 11, coat);
  drawing.disc(at, y + 9, 5, skin);
  drawing.rectangle(at - 5, y + 3, 10, 3, coat);
}
