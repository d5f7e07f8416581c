// A room of Sokoban as gym-sokoban's `rgb_array` draws it, and so VAGEN and RAGEN: a sprite of 16 × 16 pixels per cell.
// The sprites are those of gym-sokoban 0.0.6; test/golden/envs/sprites.json holds pictures by its own code.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DrawnPictures } from '../api/drawn-pictures';
import { Drawing } from '../api/drawing';
import { readSprite } from '../api/sprite';
import { cellPixels } from './picture';

/** Files by the content that a cell displays: wall, empty, target, box on target, box, player, player on target. */
const files = ['wall', 'floor', 'box_target', 'box_on_target', 'box', 'player', 'player_on_target'];

const folder = () => fileURLToPath(new URL('../sokoban/sprites', import.meta.url));
const drawn = new DrawnPictures();

/** Returns the picture of a room as PNG; `cells` are indices into the files, row by row. */
export const spriteRoom = (cells: readonly number[], columns: number): Uint8Array =>
  drawn.get(`${columns} ${cells.join('')}`, () => {
    const drawing = new Drawing(columns * cellPixels, (cells.length / columns) * cellPixels, [0, 0, 0]);
    cells.forEach((cell, at) => {
      const sprite = readSprite(join(folder(), `${files[cell]}.png`), 'install the extension again');
      drawing.image(sprite, (at % columns) * cellPixels, Math.floor(at / columns) * cellPixels);
    });
    return drawing.png();
  });
