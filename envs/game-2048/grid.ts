// The grid of 2048 and its moves: 0 up, 1 right, 2 down, 3 left. Cells are flat indices, row · size + column; 0 is an
// empty cell. A move pushes the tiles of each line to one side. Equal neighbours merge, starting at this side; each
// tile merges at most once per move.

export interface Slide {
  grid: number[];
  /** Sum of the tiles that result from merging. */
  merged: number;
  moved: boolean;
}

export const moveNames = ['Up', 'Right', 'Down', 'Left'] as const;

/** Returns the lines of the grid for each move. A line lists its cells in the order in which the move fills them. */
export function linesOf(size: number): number[][][] {
  const line = (cell: (i: number, k: number) => number) =>
    Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, k) => cell(i, k)));
  return [
    line((column, k) => k * size + column),
    line((row, k) => row * size + size - 1 - k),
    line((column, k) => (size - 1 - k) * size + column),
    line((row, k) => row * size + k),
  ];
}

/** Returns the grid after a move, as a new array, and what the move changed. */
export function slide(grid: readonly number[], lines: readonly (readonly number[])[]): Slide {
  const after = new Array<number>(grid.length).fill(0);
  let merged = 0;
  for (const cells of lines) {
    let filled = 0;
    let open = false; // whether the latest tile may still merge
    for (const cell of cells) {
      const tile = grid[cell];
      if (tile === 0) continue;
      if (open && after[cells[filled - 1]] === tile) {
        after[cells[filled - 1]] = 2 * tile;
        merged += 2 * tile;
        open = false;
      } else {
        after[cells[filled++]] = tile;
        open = true;
      }
    }
  }
  return { grid: after, merged, moved: after.some((tile, cell) => tile !== grid[cell]) };
}

/** The largest tile of a grid, 0 if it is empty. */
export const largestTile = (grid: readonly number[]): number => grid.reduce((most, tile) => Math.max(most, tile), 0);
