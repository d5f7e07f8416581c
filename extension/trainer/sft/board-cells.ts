// Cells of board states as demonstrations name them: the coordinates that a state lists, moves between cells, and the
// offset between two cells in words. Rows count downwards and columns to the right, from 0.

export type Cell = readonly [row: number, column: number];

/** Change of (row, column) by the name of each move. */
export const moves: Readonly<Record<string, Cell>> = { Left: [0, -1], Down: [1, 0], Right: [0, 1], Up: [-1, 0] };
export const moveNames = Object.keys(moves);

/** Returns the cells after `label:` in a state that lists coordinates; an empty list if the state has no such line. */
export function cellsAfter(state: string, label: string): Cell[] {
  const line = new RegExp(`^${label}: (.*)$`, 'm').exec(state)?.[1] ?? '';
  return [...line.matchAll(/\((\d+), (\d+)\)/g)].map(([, row, column]) => [Number(row), Number(column)]);
}

export const cellText = ([row, column]: Cell): string => `(${row}, ${column})`;

export const isSameCell = (a: Cell, b: Cell): boolean => a[0] === b[0] && a[1] === b[1];

/** Returns the cell to which a named move leads. */
export const movedCell = ([row, column]: Cell, move: string): Cell => [row + moves[move][0], column + moves[move][1]];

/** Describes the offset between two cells, such as `2 down, 1 left`, `1 up` or `here`. */
export function offsetText(from: Cell, to: Cell): string {
  const down = to[0] - from[0];
  const right = to[1] - from[1];
  const parts: string[] = [];
  if (down !== 0) parts.push(`${Math.abs(down)} ${down > 0 ? 'down' : 'up'}`);
  if (right !== 0) parts.push(`${Math.abs(right)} ${right > 0 ? 'right' : 'left'}`);
  return parts.join(', ') || 'here';
}
