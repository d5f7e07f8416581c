// A Sudoku as a picture: given numbers are black, placed numbers blue, and thick lines divide the boxes.
import { Drawing } from '../api/drawing';
import type { Colour } from '../api/picture';
import type { Grid } from './grid';

const cellPixels = 28;
const paper: Colour = [255, 255, 255];
const line: Colour = [170, 170, 170];
const given: Colour = [0, 0, 0];
const placed: Colour = [30, 90, 200];

/** Side of the picture of a grid of n × n cells. */
export const sudokuPictureSide = (n: number): number => n * cellPixels + 3;

/** Returns the picture of a grid as PNG. `initial` has the given numbers; 0 is an empty cell. */
export function sudokuPicture(grid: Grid, initial: Grid): Uint8Array {
  const n = Math.sqrt(grid.length);
  const box = Math.sqrt(n);
  const side = sudokuPictureSide(n);
  const drawing = new Drawing(side, side, paper);
  for (let i = 0; i <= n; i++) {
    const [width, colour] = i % box === 0 ? [3, given] : [1, line];
    drawing.rectangle(i * cellPixels, 0, width, side, colour);
  }
  for (let i = 0; i <= n; i++) {
    const [width, colour] = i % box === 0 ? [3, given] : [1, line];
    drawing.rectangle(0, i * cellPixels, side, width, colour);
  }
  for (let i = 0; i <= n; i += box) drawing.rectangle(i * cellPixels, 0, 3, side, given);
  grid.forEach((number, at) => {
    const [x, y] = [(at % n) * cellPixels + 2, Math.floor(at / n) * cellPixels + 2];
    if (number > 0) drawing.number(number, x, y, cellPixels - 2, initial[at] > 0 ? given : placed, 0.65);
  });
  return drawing.png();
}
