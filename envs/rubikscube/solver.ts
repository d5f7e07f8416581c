// The shortest solution of a cube by bidirectional breadth-first search. Cubes that differ only by a permutation of
// colours are the same node. All solved cubes are therefore one node, the goal.
import { solvedCube, turned, type Cube } from './cube';

/** Maximum number of visited nodes; a real cube needs far fewer. */
const mostNodes = 400_000;

interface Node {
  cube: Cube;
  /** The previous node on the path; undefined at the start. `move` leads from the previous node to this node. */
  from: Node | undefined;
  move: number;
}

/**
 * Moves that solve a cube, as indices into `turns`; empty if the cube is solved. The turn at an odd index must be the
 * inverse of the turn before it. Returns undefined if the search visits more than `mostNodes` nodes.
 */
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

/**
 * Returns the path from the start to the node where both searches meet, then the inverse of the path from the goal to
 * this node.
 */
function joined(fromStart: Node, fromEnd: Node): number[] {
  const way = (node: Node | undefined): number[] => (node?.from ? [...way(node.from), node.move] : []);
  return [
    ...way(fromStart),
    ...way(fromEnd)
      .reverse()
      .map(move => move ^ 1),
  ];
}

/**
 * Returns a key of a cube: its colours, numbered by first occurrence. Cubes that differ only by a permutation of
 * colours have equal keys.
 */
function nameOf(cube: Cube): string {
  const names = new Map<number, number>();
  return String.fromCharCode(
    // eslint-disable-next-line no-restricted-syntax -- only 24 stickers
    ...cube.map(colour => names.get(colour) ?? (names.set(colour, names.size), names.size - 1)),
  );
}
