// Completes a grid by depth-first search, filling the cell with the fewest candidates first. Used to solve a puzzle and
// to check that its solution is unique.
import { Marks, sizeOf, type Grid } from './grid';

/** Returns up to `most` completions of a grid. The grid itself must not violate a rule. */
export function completions(grid: Grid, most: number): Grid[] {
  const n = sizeOf(grid);
  const marks = new Marks(n);
  const open: number[] = [];
  grid.forEach((number, cell) => (number === 0 ? open.push(cell) : marks.flip(cell, 1 << number)));
  const work = grid.slice();
  const found: Grid[] = [];

  /**
   * Fills the cells that `open` lists from index `from` on. First swaps the cell with the fewest candidates to index
   * `from`.
   */
  const search = (from: number) => {
    if (from === open.length) return void found.push(work.slice());
    let fewest = n + 1;
    let chosen = from;
    let free = 0;
    for (let i = from; i < open.length && fewest > 1; i++) {
      const bits = marks.free(open[i]);
      const count = bitCount(bits);
      if (count < fewest) [fewest, chosen, free] = [count, i, bits];
    }
    if (fewest === 0) return;
    const cell = open[chosen];
    [open[from], open[chosen]] = [cell, open[from]];
    for (let bits = free; bits !== 0 && found.length < most; bits &= bits - 1) {
      const bit = bits & -bits;
      work[cell] = 31 - Math.clz32(bit);
      marks.flip(cell, bit);
      search(from + 1);
      marks.flip(cell, bit);
    }
    work[cell] = 0;
    [open[from], open[chosen]] = [open[chosen], cell];
  };
  search(0);
  return found;
}

function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}
