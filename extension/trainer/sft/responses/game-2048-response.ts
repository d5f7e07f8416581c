// Demonstrated responses for 2048. The facts are what each move merges, as the sum of the merged tiles. A looking
// response takes the move that merges most and, among equals, leaves most empty cells; then the best move on the
// grid after this move. A guess takes random moves.
import { linesOf, moveNames, slide } from '../../../../envs/game-2048/grid';
import type { Demonstration } from '../demonstrated-response';
import { guess, pickSome } from './response';
import type { ResponseRequest } from './response';

export function game2048Response({ state, looks, stream }: ResponseRequest): Demonstration | null {
  const rows = [...state.matchAll(/^Row \d+: \[([\d, ]+)\]$/gm)].map(([, row]) => row.split(', ').map(Number));
  if (rows.length === 0) return null;
  const moves = evaluated(rows.flat(), rows.length);
  const facts = `${moves.map(({ name, moved, merged }) => `${name} ${moved ? merged : 'no'}`).join(', ')}.`;
  const first = best(moves);
  if (!looks || !first) return { thought: `${facts} ${guess}`, actions: pickSome(moveNames, mostGuesses, stream) };
  const second = best(evaluated(first.grid, rows.length));
  const actions = second ? [first.name, second.name] : [first.name];
  return { thought: `${facts} take ${actions.join(', ')}.`, actions };
}

/** Maximum number of moves of a guess. */
const mostGuesses = 2;

interface Move {
  name: string;
  grid: number[];
  merged: number;
  moved: boolean;
}

const evaluated = (grid: readonly number[], size: number): Move[] =>
  linesOf(size).map((lines, move) => ({ name: moveNames[move], ...slide(grid, lines) }));

/** Returns the best possible move; undefined if no move changes the grid. */
function best(moves: readonly Move[]): Move | undefined {
  const value = ({ merged, grid }: Move): number => 100 * merged + grid.filter(tile => tile === 0).length;
  return moves
    .filter(({ moved }) => moved)
    .reduce<Move | undefined>((top, move) => (top && value(top) >= value(move) ? top : move), undefined);
}
