// Finds placements that complete a grid from its current state. A number can be overwritten but not removed. If a wrong
// number blocks the right number of another cell, the wrong number must be overwritten. If the cell with the wrong
// number cannot hold its right number yet, a temporary number is placed in this cell first.
import { candidates, isAllowed, type Grid } from './grid';
import { completions } from './solver';

export interface Placement {
  cell: number;
  number: number;
}

/**
 * Returns legal placements, in order, that complete `current`. The goal is `solution` if all filled cells agree with
 * it, else another completion. Returns undefined if more than about `most` placements would be needed.
 */
export function plan(current: Grid, initial: Grid, solution: Grid, most: number): Placement[] | undefined {
  const agrees = current.every((number, cell) => number === 0 || number === solution[cell]);
  const goal = agrees ? solution : (completions(current, 1)[0] ?? solution);
  const grid = current.slice();
  const taken: Placement[] = [];
  const placeNumber = (cell: number, number: number) => {
    grid[cell] = number;
    taken.push({ cell, number });
  };
  while (taken.length <= most) {
    const wrong = [...grid.keys()].filter(cell => grid[cell] !== goal[cell]);
    if (wrong.length === 0) return taken;
    const free = wrong.filter(cell => isAllowed(grid, cell, goal[cell]));
    for (const cell of free) placeNumber(cell, goal[cell]); // placements of these numbers do not block each other
    if (free.length > 0) continue;
    const detour = wrong.map(cell => ({ cell, number: otherNumber(grid, cell) })).find(({ number }) => number > 0);
    if (!detour) return undefined;
    placeNumber(detour.cell, detour.number);
  }
  return undefined;

  /** A number that may temporarily replace the wrong number in a cell; 0 if there is none. */
  function otherNumber(grid: Grid, cell: number): number {
    if (initial[cell] !== 0 || grid[cell] === 0) return 0;
    const without = grid.slice();
    without[cell] = 0;
    return candidates(without, cell).find(number => number !== grid[cell] && number !== goal[cell]) ?? 0;
  }
}
