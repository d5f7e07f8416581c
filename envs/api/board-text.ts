// RAGEN's text formats of a board, shared by the grid worlds: coordinates by kind of object, and coordinates with the
// grid.

/** Cells of one kind: a label and the flat indices (row · columns + column) in row-major order. */
export type BoardEntry = readonly [label: string, cells: readonly number[]];

/** `Board size: …`, then one line `Label: (row, column), …` for each kind that has cells, zero-indexed. */
export function coordinateText(rows: number, columns: number, entries: readonly BoardEntry[]): string {
  let text = `Board size: ${rows} rows x ${columns} cols (zero-indexed).`;
  for (const [label, cells] of entries) {
    if (cells.length === 0) continue;
    const pairs = cells.map(cell => `(${Math.floor(cell / columns)}, ${cell % columns})`);
    text += `\n${label}: ${pairs.join(', ')}`;
  }
  return text;
}

/** The `grid_coord` format; each heading ends in a space, as in RAGEN. */
export function gridCoordText(coordinates: string, grid: string): string {
  return `Coordinates: \n${coordinates}\nGrid Map: \n${grid}`;
}
