// Demonstrated responses for Sudoku with the list of each empty cell's candidates. The fact is the number of listed
// cells. A looking thought names cells with a single candidate or, if there is none, the solver's next placement; a
// guess places random numbers.
import type { Demonstration } from '../demonstrated-response';
import { guess, pick } from './response';
import type { ResponseRequest } from './response';

interface OpenCell {
  cell: string;
  numbers: string[];
}

export function sudokuResponse({ state, plan, looks, mostActions, stream }: ResponseRequest): Demonstration | null {
  if (!state.includes('SUDOKU PUZZLE')) return null;
  const open: OpenCell[] = [...state.matchAll(/^ {2}- (\(\d+,\d+\)): \[([\d, ]+)\]$/gm)].map(([, cell, numbers]) => ({
    cell,
    numbers: numbers.split(', '),
  }));
  const facts = `${open.length} open.`;
  const single = open.filter(({ numbers }) => numbers.length === 1).slice(0, mostActions);
  if (looks && single.length > 0) {
    const placed = single.map(({ cell, numbers }) => ({ cell, number: numbers[0] }));
    return {
      thought: `${facts} only ${placed.map(({ cell, number }) => `${cell} ${number}`).join(', ')}.`,
      actions: placed.map(placement),
    };
  }
  const [, number, row, column] = /^place (\d+) at row (\d+) col (\d+)$/.exec(plan[0] ?? '') ?? [];
  if (looks && number !== undefined) {
    const cell = `(${row},${column})`;
    return { thought: `${facts} pick ${cell} ${number}.`, actions: [placement({ cell, number })] };
  }
  const cells = open.map(({ cell }) => cell);
  const guesses = Array.from({ length: 1 + stream.integer(mostActions) }, () =>
    // Without candidates, no number is allowed anywhere: the guess then names the first cell.
    placement({ cell: cells.length > 0 ? pick(cells, stream) : '(1,1)', number: `${1 + stream.integer(sideLength)}` }),
  );
  return { thought: `${facts} ${guess}`, actions: guesses };
}

/** Number of rows of the grids that ragen-small plays. */
const sideLength = 4;

const placement = ({ cell, number }: { cell: string; number: string }): string => `place ${number} at ${cell}`;
