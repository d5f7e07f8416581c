// A Sudoku grid of n × n cells with square boxes. Cells are flat indices, row · n + column; 0 is an empty cell. Rule:
// no number occurs twice in a row, a column or a box.

export type Grid = Uint8Array;

/** The units (row, column, box) in which a number already occurs. */
export interface Clash {
  row: boolean;
  column: boolean;
  box: boolean;
}

export const sizeOf = (grid: Grid): number => Math.sqrt(grid.length);
export const boxSide = (n: number): number => Math.sqrt(n);

/**
 * Tells whether a number occurs in the row, in the column and in the box of a cell. A number in the cell itself counts
 * too.
 */
export function clash(grid: Grid, cell: number, number: number): Clash {
  const n = sizeOf(grid);
  const side = boxSide(n);
  const row = Math.floor(cell / n);
  const column = cell % n;
  const corner = (row - (row % side)) * n + column - (column % side);
  const found: Clash = { row: false, column: false, box: false };
  for (let i = 0; i < n; i++) {
    if (grid[row * n + i] === number) found.row = true;
    if (grid[i * n + column] === number) found.column = true;
    if (grid[corner + Math.floor(i / side) * n + (i % side)] === number) found.box = true;
  }
  return found;
}

export function isAllowed(grid: Grid, cell: number, number: number): boolean {
  const { row, column, box } = clash(grid, cell, number);
  return !row && !column && !box;
}

/** Returns the numbers allowed in an empty cell, in ascending order; an empty list for a filled cell. */
export function candidates(grid: Grid, cell: number): number[] {
  if (grid[cell] !== 0) return [];
  return Array.from({ length: sizeOf(grid) }, (_, i) => i + 1).filter(number => isAllowed(grid, cell, number));
}

/** Returns the box that contains a cell, as row and column among the boxes. */
export function boxOf(cell: number, n: number): [number, number] {
  const side = boxSide(n);
  return [Math.floor(cell / n / side), Math.floor((cell % n) / side)];
}

/** The numbers that occur in each row, column and box, as bit sets with bit k for the number k. */
export class Marks {
  private readonly rows: Int32Array;
  private readonly columns: Int32Array;
  private readonly boxes: Int32Array;
  private readonly all: number;

  constructor(private readonly n: number) {
    [this.rows, this.columns, this.boxes] = [0, 1, 2].map(() => new Int32Array(n));
    this.all = 2 ** (n + 1) - 2;
  }

  /** Toggles a number, given as a bit, in the row, column and box of a cell. */
  flip(cell: number, bit: number): void {
    this.rows[Math.floor(cell / this.n)] ^= bit;
    this.columns[cell % this.n] ^= bit;
    this.boxes[this.boxAt(cell)] ^= bit;
  }

  /** Returns the numbers allowed in a cell, as a bit set. */
  free(cell: number): number {
    return (
      this.all & ~(this.rows[Math.floor(cell / this.n)] | this.columns[cell % this.n] | this.boxes[this.boxAt(cell)])
    );
  }

  private boxAt(cell: number): number {
    const [row, column] = boxOf(cell, this.n);
    return row * boxSide(this.n) + column;
  }
}
