// A room of Sokoban as a picture: a coloured square per cell, as in gym-sokoban's `tiny_world` mode.
import { DrawnPictures } from '../api/drawn-pictures';
import { boardPicture, type Colour } from '../api/picture';

/** Colours by the content that a cell displays: wall, empty, target, box on target, box, player, player on target. */
const colours: readonly Colour[] = [
  [0, 0, 0],
  [243, 248, 238],
  [254, 126, 125],
  [254, 95, 56],
  [142, 121, 56],
  [160, 212, 56],
  [219, 212, 56],
];
/** Side of a cell in pixels, as coloured square and as sprite of gym-sokoban. */
export const cellPixels = 16;

/** Size of the picture of a room. */
export const roomPictureSize = (rows: number, columns: number): { width: number; height: number } => ({
  width: columns * cellPixels,
  height: rows * cellPixels,
});

const drawn = new DrawnPictures();

/** Returns the picture of a room as PNG; `cells` are indices into the colours, row by row. */
export const roomPicture = (cells: readonly number[], columns: number): Uint8Array =>
  drawn.get(`${columns} ${cells.join('')}`, () =>
    boardPicture(
      cells.map(cell => colours[cell]),
      columns,
      cellPixels,
    ),
  );
