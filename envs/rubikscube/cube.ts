// A 2 × 2 × 2 cube as 24 stickers. A sticker's index is 4 · face + position. The faces are numbered in the order U L F
// R B D; positions count row by row. Sticker colours are face indices. A turn is a table of sources: after the turn,
// index i has the sticker that was at index `turn[i]`.
//
// RAGEN's B move is not a turn of a real cube: it swaps the stickers 22 and 23 on the D face, which splits corners.
// RAGEN's move is the default, because RAGEN generates its levels with it; `realBack` is the turn of a real cube.

export type Cube = Uint8Array;

export const moveNames = ['U', "U'", 'D', "D'", 'L', "L'", 'R', "R'", 'F', "F'", 'B', "B'"] as const;

export const solvedCube = (): Cube => Uint8Array.from({ length: 24 }, (_, at) => at >> 2);

/**
 * The turning face, followed by the pairs of stickers in the ring around it. Each pair moves to the position of the
 * pair before it.
 */
type Ring = readonly [face: number, ...pairs: (readonly [number, number])[]];

const rings: readonly Ring[] = [
  [0, [8, 9], [12, 13], [16, 17], [4, 5]],
  [5, [10, 11], [6, 7], [18, 19], [14, 15]],
  [1, [0, 2], [19, 17], [20, 22], [8, 10]],
  [3, [1, 3], [9, 11], [21, 23], [18, 16]],
  [2, [2, 3], [7, 5], [21, 20], [12, 14]],
];
const ragensBack: Ring = [4, [0, 1], [13, 15], [22, 23], [6, 4]];
const realBack: Ring = [4, [0, 1], [13, 15], [23, 22], [6, 4]];

function quarter([face, ...pairs]: Ring): Uint8Array {
  const turn = Uint8Array.from({ length: 24 }, (_, at) => at);
  [2, 0, 3, 1].forEach((from, to) => (turn[4 * face + to] = 4 * face + from));
  pairs.forEach((pair, i) => pair.forEach((at, k) => (turn[at] = pairs[(i + 1) % pairs.length][k])));
  return turn;
}

/**
 * Returns the tables of the twelve moves in the order of `moveNames`. The move at an odd index is the inverse of the
 * move before it.
 */
export function turns(real: boolean): Uint8Array[] {
  return [...rings, real ? realBack : ragensBack].flatMap(ring => {
    const once = quarter(ring);
    return [once, turned(turned(once, once), once)];
  });
}

/** Returns the cube after a turn. */
export const turned = (cube: Cube, turn: Uint8Array): Cube => turn.map(from => cube[from]);

/** Whether each face has a single colour. */
export const isSolved = (cube: Cube): boolean => cube.every((colour, at) => colour === cube[at & ~3]);
