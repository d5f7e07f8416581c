// Formats a Sudoku grid in RAGEN's three text formats, and parses answers. This file builds all texts in which a model
// sees a grid.
import { boxSide, candidates, sizeOf, type Grid } from './grid';

const bar = '='.repeat(50);

/**
 * Formats the rows with `| ` between boxes and a dashed line between rows of boxes. `wide` is the width of a cell in
 * characters.
 */
function lines(grid: Grid, wide: number, shown: (number: number, cell: number) => string): string {
  const n = sizeOf(grid);
  const side = boxSide(n);
  const text: string[] = [];
  for (let row = 0; row < n; row++) {
    if (row > 0 && row % side === 0) text.push('-'.repeat(wide * n + side - 1));
    let line = '';
    for (let column = 0; column < n; column++) {
      if (column > 0 && column % side === 0) line += '| ';
      line += shown(grid[row * n + column], row * n + column);
    }
    text.push(line.trimEnd());
  }
  return text.join('\n');
}

/** Returns the grid as digits, with a dot per empty cell. */
export const simpleText = (grid: Grid): string => lines(grid, 2, number => `${number || '.'} `);

/** Returns the grid with given numbers in brackets, a legend, and the feedback on the last placement. */
export function detailedText(grid: Grid, initial: Grid, feedback: string): string {
  const cells = lines(grid, 3, (number, cell) =>
    number === 0 ? ' . ' : initial[cell] !== 0 ? `[${number}]` : ` ${number} `,
  );
  const legend = 'Legend: [N]=initial cell, N=user-placed, *N*=conflict, .=empty';
  return [bar, 'SUDOKU PUZZLE', bar, cells, '', legend, ...(feedback ? ['', feedback] : [])].join('\n');
}

/**
 * Returns the text that the format `with_feedback` appends: the progress and, if candidates are enabled and at most ten
 * cells are empty, the candidates.
 */
export function feedbackText(
  grid: Grid,
  initial: Grid,
  showCandidates: boolean,
  steps: number,
  maxSteps: number,
): string {
  const n = sizeOf(grid);
  const empty = [...grid.keys()].filter(cell => grid[cell] === 0);
  const text: string[] = [];
  if (showCandidates && empty.length > 0 && empty.length <= 10) {
    text.push('', '💡 VALID NUMBERS FOR EMPTY CELLS:');
    for (const cell of empty) {
      const numbers = candidates(grid, cell);
      if (numbers.length > 0) text.push(`  - ${cellText(cell, n)}: ${list(numbers)}`);
    }
  }
  const given = initial.filter(number => number !== 0).length;
  const filled = grid.length - empty.length;
  text.push('', `Progress: ${filled}/${grid.length} cells filled (${given} initial, ${filled - given} placed)`);
  text.push(`Steps: ${steps}/${maxSteps}`);
  return text.join('\n');
}

/** Returns a cell as `(row,column)`, both counted from 1. */
export const cellText = (cell: number, n: number): string => `(${Math.floor(cell / n) + 1},${(cell % n) + 1})`;

/** Returns a list of integers in Python's format. */
export const list = (numbers: readonly number[]): string => `[${numbers.join(', ')}]`;

/** Patterns of an answer, tried in this order. A pattern may match anywhere in the answer. */
const forms = [
  /place\s+(\d+)\s+at\s+row\s+(\d+)\s+col\s+(\d+)/,
  /place\s+(\d+)\s+at\s+\((\d+),\s*(\d+)\)/,
  /place\s+(\d+)\s+at\s+(\d+),\s*(\d+)/,
  /(\d+)\s+at\s+(\d+),\s*(\d+)/,
  /\((\d+),\s*(\d+),\s*(\d+)\)/,
  /(\d+),\s*(\d+),\s*(\d+)/,
];

/**
 * Parses an answer into a cell and a number, or returns an error. If the answer contains `place` or `at`, the number
 * precedes the cell.
 */
export function readPlacement(answer: string, n: number): { cell: number; number: number } | { error: string } {
  const text = answer.trim().toLowerCase();
  const found = forms.map(form => form.exec(text)).find(match => match !== null);
  if (!found)
    return { error: `Could not parse action: '${text}'. Expected format: 'place 5 at row 2 col 3' or '2,3,5'` };
  const [first, second, third] = found.slice(1).map(BigInt);
  const [number, row, column] = /place|at/.test(text) ? [first, second, third] : [third, first, second];
  const outside = (value: bigint) => value < 1 || value > n;
  const range = `is out of range (1-${n})`;
  if (outside(row)) return { error: `Row ${row} ${range}` };
  if (outside(column)) return { error: `Column ${column} ${range}` };
  if (outside(number)) return { error: `Number ${number} ${range}` };
  return { cell: (Number(row) - 1) * n + Number(column) - 1, number: Number(number) };
}
