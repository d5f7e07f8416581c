// The map of a frozen lake, and RAGEN's generator: tiles, start and goal are drawn from numpy's PCG64, and redrawn
// until the goal is reachable. Cells are flat indices, row · size + column. A seed gives the same map as in RAGEN;
// test/golden/envs/frozen-lake.json holds maps from RAGEN.
import { Pcg64 } from '../api/random/pcg64';

export const frozen = 0;
export const hole = 1;
export const goal = 2;

export interface Lake {
  size: number;
  /** Kind of each cell: `frozen`, `hole` or `goal`. */
  tiles: Uint8Array;
  start: number;
}

/**
 * Returns a lake of size × size tiles. Each tile is frozen with probability `p`, and the goal is reachable from the
 * start.
 */
export function drawLake(size: number, p: number, seed: number): Lake {
  const random = new Pcg64(seed);
  const shares = [p, 1 - p];
  const tiles = new Uint8Array(size * size);
  for (;;) {
    for (let cell = 0; cell < tiles.length; cell++) tiles[cell] = random.choice(2, shares);
    const start = random.integers(0, size) * size + random.integers(0, size);
    const end = random.integers(0, size) * size + random.integers(0, size);
    if (start === end) continue;
    tiles[start] = frozen;
    tiles[end] = goal;
    if (reaches({ size, tiles, start })) return { size, tiles, start };
  }
}

/**
 * Returns the cell after a move without slipping; a move over the edge has no effect. Moves are those of Gymnasium: 0
 * left, 1 down, 2 right, 3 up.
 */
export function moved(cell: number, move: number, size: number): number {
  const column = cell % size;
  if (move === 0) return column === 0 ? cell : cell - 1;
  if (move === 1) return cell + size < size * size ? cell + size : cell;
  if (move === 2) return column === size - 1 ? cell : cell + 1;
  return cell < size ? cell : cell - size;
}

function reaches({ size, tiles, start }: Lake): boolean {
  const seen = new Uint8Array(tiles.length);
  const frontier = [start];
  for (let cell = frontier.pop(); cell !== undefined; cell = frontier.pop()) {
    if (tiles[cell] === goal) return true;
    if (seen[cell] || tiles[cell] === hole) continue;
    seen[cell] = 1;
    for (let move = 0; move < 4; move++) frontier.push(moved(cell, move, size));
  }
  return false;
}
