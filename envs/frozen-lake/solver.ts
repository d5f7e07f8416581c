// Computes the optimal moves on the ice by value iteration over the transition probabilities. Optimal moves maximize
// the discounted probability of reaching the goal. Because of the discount, the shorter of two paths with equal
// probability is preferred.
import type { Dynamics } from './dynamics';
import { goal, hole, moved, type Lake } from './lake';

const discount = 0.99;
const precision = 1e-10;

/**
 * Returns the best move for each cell (0 left, 1 down, 2 right, 3 up). The value is −1 for holes, for the goal, and for
 * cells from which the goal is unreachable.
 */
export function bestMoves({ size, tiles }: Lake, ice: Dynamics): Int8Array {
  const values = new Float64Array(tiles.length);
  const best = new Int8Array(tiles.length).fill(-1);
  for (let change = 1; change > precision;) {
    change = 0;
    for (let cell = 0; cell < tiles.length; cell++) {
      if (tiles[cell] === goal || tiles[cell] === hole) continue;
      let highest = 0;
      for (let move = 0; move < 4; move++) {
        let value = 0;
        for (const outcome of ice[move]) {
          const next = moved(cell, outcome.move, size);
          value += outcome.probability * (tiles[next] === goal ? 1 : discount * values[next]);
        }
        if (value > highest) {
          highest = value;
          best[cell] = move;
        }
      }
      change = Math.max(change, Math.abs(highest - values[cell]));
      values[cell] = highest;
    }
  }
  return best;
}

/**
 * Returns the best moves from a cell to the goal, assuming that no move slips. If a move leads back to a visited cell,
 * the plan ends with this move. The caller then executes the plan, and calls `plan` again with the player's new cell.
 * Returns undefined if the goal is unreachable.
 */
export function plan(best: Int8Array, size: number, from: number): number[] | undefined {
  if (best[from] < 0) return undefined;
  const moves: number[] = [];
  const passed = new Uint8Array(best.length);
  for (let cell = from; best[cell] >= 0 && !passed[cell]; cell = moved(cell, best[cell], size)) {
    passed[cell] = 1;
    moves.push(best[cell]);
  }
  return moves;
}
