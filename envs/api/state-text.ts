// True states of grid worlds as text, for `Environment.state`: a JSON object of positions, and sentences that say where
// things are, seen from the player. Cells are flat indices, row · columns + column; rows and columns count from 0.

/** Things of one kind by name, such as `box`, and their cells. */
export type Things = readonly (readonly [name: string, cells: readonly number[]])[];

/**
 * Returns a JSON object with the [row, column] of each kind of thing; a list of such pairs for several, and no key for
 * none.
 */
export function structuredState(columns: number, things: Things): string {
  const parts = things
    .filter(([, cells]) => cells.length > 0)
    .map(([name, cells]) => {
      const pairs = cells.map(cell => `[${Math.floor(cell / columns)}, ${cell % columns}]`);
      return `${JSON.stringify(name)}: ${pairs.length === 1 ? pairs[0] : `[${pairs.join(', ')}]`}`;
    });
  return `{${parts.join(', ')}}`;
}

/** Returns one sentence for each thing: its rows and columns from the player. */
export function relativeSentences(columns: number, player: number, things: Things): string {
  const sentences = things.flatMap(([name, cells]) =>
    cells.map(cell => {
      const down = Math.floor(cell / columns) - Math.floor(player / columns);
      const right = (cell % columns) - (player % columns);
      if (down === 0 && right === 0) return `A ${name} is at the place of the player.`;
      const vertical = down === 0 ? 'in the same row' : `${count(down, 'row')} ${down > 0 ? 'below' : 'above'}`;
      const side = right > 0 ? 'right' : 'left';
      const horizontal = right === 0 ? 'in the same column' : `${count(right, 'column')} to the ${side}`;
      return `A ${name} is ${vertical} and ${horizontal}, seen from the player.`;
    }),
  );
  return sentences.join(' ');
}

const count = (offset: number, unit: string): string =>
  `${Math.abs(offset)} ${unit}${Math.abs(offset) === 1 ? '' : 's'}`;
