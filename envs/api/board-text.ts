// The texts of a board as RAGEN writes them, shared by the grid worlds: coordinates by kind of thing, and coordinates with the grid.

/** Cells of one kind: the label and the flat indices (row · columns + column) in row-major order. */
export type BoardEntry = readonly [label: string, cells: readonly number[]];

/** `Board size: …` and a line for each kind that has cells, as `Label: (row, column), …`, zero-indexed. */
export function coordinateText(rows: number, columns: number, entries: readonly BoardEntry[]): string {
  let text = `Board size: ${rows} rows x ${columns} cols (zero-indexed).`;
  for (const [label, cells] of entries) {
    if (cells.length === 0) continue;
    const pairs = cells.map(cell => `(${Math.floor(cell / columns)}, ${cell % columns})`);
    text += `\n${label}: ${pairs.join(', ')}`;
  }
  return text;
}

/** The form `grid_coord`; each heading ends in a space, as RAGEN's does. */
export function gridCoordText(coordinates: string, grid: string): string {
  return `Coordinates: \n${coordinates}\nGrid Map: \n${grid}`;
}
