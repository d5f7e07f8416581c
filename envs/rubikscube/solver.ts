// The shortest solution of a cube by breadth-first search from both ends. Cubes that differ only in their colours' names are one node,
// since every uniform colouring of the faces is solved; so there is a single end.
import { solvedCube, turned, type Cube } from './cube';

/** Cubes looked at before the search gives up; real cubes are solved long before. */
const mostNodes = 400_000;

interface Node {
  cube: Cube;
  /** The node that it was reached from, and by which move. */
  from: Node | undefined;
  move: number;
}

/** Moves (indices of `turns`, each odd one the inverse of the even one before it) to a solved cube; undefined where too much was seen. */
export function solveCube(start: Cube, turns: readonly Uint8Array[]): number[] | undefined {
  const root = (cube: Cube): Node => ({ cube, from: undefined, move: -1 });
  const sides = [start, solvedCube()].map(cube => ({
    seen: new Map([[nameOf(cube), root(cube)]]),
    edge: [root(cube)],
  }));
  if (nameOf(start) === nameOf(solvedCube())) return [];
  while (sides.every(({ edge }) => edge.length > 0)) {
    const near = sides[0].edge.length <= sides[1].edge.length ? 0 : 1;
    const [own, other] = [sides[near], sides[1 - near]];
    const next: Node[] = [];
    for (const node of own.edge)
      for (const [move, turn] of turns.entries()) {
        const cube = turned(node.cube, turn);
        const name = nameOf(cube);
        if (own.seen.has(name)) continue;
        const found = { cube, from: node, move };
        const met = other.seen.get(name);
        if (met) return near === 0 ? joined(found, met) : joined(met, found);
        own.seen.set(name, found);
        next.push(found);
      }
    own.edge = next;
    if (own.seen.size + other.seen.size > mostNodes) return undefined;
  }
  return undefined;
}

/** The way to the meeting from the start, then back along the way from the end. */
function joined(fromStart: Node, fromEnd: Node): number[] {
  const way = (node: Node | undefined): number[] => (node?.from ? [...way(node.from), node.move] : []);
  return [
    ...way(fromStart),
    ...way(fromEnd)
      .reverse()
      .map(move => move ^ 1),
  ];
}

/** The cube with its colours named in the order in which they are met. */
function nameOf(cube: Cube): string {
  const names = new Map<number, number>();
  return String.fromCharCode(
    // eslint-disable-next-line no-restricted-syntax -- 54 facelets at most
    ...cube.map(colour => names.get(colour) ?? (names.set(colour, names.size), names.size - 1)),
  );
}
