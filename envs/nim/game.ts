// The game of Nim: two players take objects from heaps in turns; who takes the last object wins. A move may be limited to
// `most` objects (Infinity: none). The player to move wins with perfect play if and only if the nim-sum, the bitwise
// exclusive or of the heaps, each modulo most + 1, is not 0 (Bouton, 1901; Grundy, 1939). Pure.

/** Takes `count` objects from the heap with index `heap`. */
export interface Move {
  heap: number;
  count: number;
}

/** Objects of each heap. */
export type Heaps = readonly number[];

/** Returns the nim-sum of the heaps. */
export const nimSum = (heaps: Heaps, most: number): number => heaps.reduce((sum, size) => sum ^ (size % (most + 1)), 0);

/** Whether no object is left. */
export const isOver = (heaps: Heaps): boolean => heaps.every(size => size === 0);

/** Returns all legal moves, heap by heap. */
export const legalMoves = (heaps: Heaps, most: number): Move[] =>
  heaps.flatMap((size, heap) => Array.from({ length: Math.min(size, most) }, (_, i) => ({ heap, count: i + 1 })));

/** Returns the heaps after a legal move. */
export const afterMove = (heaps: Heaps, { heap, count }: Move): number[] =>
  heaps.map((size, index) => (index === heap ? size - count : size));

/** Returns the first move to a nim-sum of 0; undefined if there is none. */
export const winningMove = (heaps: Heaps, most: number): Move | undefined =>
  legalMoves(heaps, most).find(move => nimSum(afterMove(heaps, move), most) === 0);

/**
 * Returns the move of a perfect player: a winning move or, in a lost position, one object of the first of the largest
 * heaps, so that the game lasts long.
 */
export const perfectMove = (heaps: Heaps, most: number): Move =>
  winningMove(heaps, most) ?? { heap: heaps.indexOf(heaps.reduce((most, size) => Math.max(most, size))), count: 1 };
