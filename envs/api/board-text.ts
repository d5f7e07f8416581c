// Two text formats for boards of grid worlds, as in RAGEN. `coordinateText` lists the coordinates of each kind of
// object. `gridCoordText` returns this list, followed by the grid.

/** Cells of one kind: a label and the flat indices (row · columns + column) in row-major order. */
export type BoardEntry = readonly [label: string, cells: readonly number[]];

/**
 * Returns `Board size: …`, followed by one line `Label: (row, column), …` per kind. Kinds without cells are omitted;
 * rows and columns count from 0.
 */
export function coordinateText(rows: number, columns: number, entries: readonly BoardEntry[]): string {
  let text = `Board size: ${rows} rows x ${columns} cols (zero-indexed).`;
  for (const [label, cells] of entries) {
    if (cells.length === 0) continue;
    const pairs = cells.map(cell => `(${Math.floor(cell / columns)}, ${cell % columns})`);
    text += `\n${label}: ${pairs.join(', ')}`;
  }
  return text;
}

/** Returns the text in the format `grid_coord`; each heading ends in a space, as in RAGEN. */
export function gridCoordText(coordinates: string, grid: string): string {
  return `Coordinates: \n${coordinates}\nGrid Map: \n${grid}`;
}
