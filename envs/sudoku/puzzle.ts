// RAGEN's puzzle generator, with CPython's `random`: backtracking puts shuffled numbers into the first empty cell until
// the grid is full, then blanks a number of shuffled cells. Such a puzzle often has several solutions. With `unique`, a
// cell whose blanking would allow a second solution keeps its number and the next cell is tried; a puzzle of RAGEN's
// that has one solution is unchanged.
import { PythonRandom } from '../api/random/python-random';
import { Marks, sizeOf, type Grid } from './grid';
import { completions } from './solver';

export const shares = { easy: 0.4, medium: 0.5, hard: 0.6 } as const;

export interface Puzzle {
  initial: Grid;
  solution: Grid;
}

export function drawPuzzle(n: number, difficulty: keyof typeof shares, unique: boolean, seed: number): Puzzle {
  const random = new PythonRandom(seed);
  const solution = new Uint8Array(n * n);
  fill(solution, 0, new Marks(n), random);
  const cells = [...solution.keys()];
  random.shuffle(cells);
  const initial = solution.slice();
  let blanks = Math.floor(n * n * shares[difficulty]);
  for (const cell of cells) {
    if (blanks === 0) break;
    initial[cell] = 0;
    if (unique && completions(initial, 2).length > 1) initial[cell] = solution[cell];
    else blanks--;
  }
  return { initial, solution };
}

function fill(grid: Grid, cell: number, marks: Marks, random: PythonRandom): boolean {
  if (cell === grid.length) return true;
  const numbers = Array.from({ length: sizeOf(grid) }, (_, i) => i + 1);
  random.shuffle(numbers);
  for (const number of numbers) {
    const bit = 1 << number;
    if ((marks.free(cell) & bit) === 0) continue;
    grid[cell] = number;
    marks.flip(cell, bit);
    if (fill(grid, cell + 1, marks, random)) return true;
    marks.flip(cell, bit);
  }
  grid[cell] = 0;
  return false;
}
