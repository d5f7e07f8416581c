// RAGEN's puzzle generator, driven by CPython's `random`: backtracking fills the grid with shuffled numbers, then the
// first cells of a shuffled list are blanked. Such a puzzle often has several solutions. With `unique`, a cell keeps
// its number if blanking it would allow a second solution, and the next cell is tried instead. A puzzle that has one
// solution is the same with and without `unique`.
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
