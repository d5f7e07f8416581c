// The shortest solution by breadth-first search over (player, boxes). Moves are tried in the order up, down, left,
// right, so that the search finds the same shortest solution as RAGEN's oracle.
import { box, boxOnTarget, columnSteps, rowSteps, target, wall, type Room } from './room';

const depthLimit = 100;

interface Node {
  player: number;
  /** Cells of the boxes, ascending. */
  boxes: number[];
  from: Node | undefined;
  move: number;
  depth: number;
}

/**
 * Moves (0 up, 1 down, 2 left, 3 right) that solve the room. Empty if the room is solved; undefined if no solution has
 * at most 100 moves.
 */
export function solveRoom({ fixed, state, width, player }: Room): number[] | undefined {
  const boxes = [...state.keys()].filter(at => state[at] === box || state[at] === boxOnTarget);
  const steps = rowSteps.map((row, move) => row * width + columnSteps[move]);
  const keyOf = (man: number, cells: readonly number[]): string =>
    // eslint-disable-next-line no-restricted-syntax -- 16 boxes at most
    String.fromCharCode(man, ...cells);
  const seen = new Set([keyOf(player, boxes)]);
  const queue: Node[] = [{ player, boxes, from: undefined, move: -1, depth: 0 }];
  for (let head = 0; head < queue.length; head++) {
    const node = queue[head];
    if (node.boxes.every(cell => fixed[cell] === target)) return moves(node);
    if (node.depth === depthLimit) continue;
    for (let move = 0; move < 4; move++) {
      const next = node.player + steps[move];
      if (fixed[next] === wall) continue;
      let after = node.boxes;
      const pushed = after.indexOf(next);
      if (pushed >= 0) {
        const beyond = next + steps[move];
        if (fixed[beyond] === wall || after.includes(beyond)) continue;
        after = after.slice();
        after[pushed] = beyond;
        after.sort((a, b) => a - b);
      }
      const key = keyOf(next, after);
      if (seen.has(key)) continue;
      seen.add(key);
      queue.push({ player: next, boxes: after, from: node, move, depth: node.depth + 1 });
    }
  }
  return undefined;
}

function moves(last: Node): number[] {
  const path: number[] = [];
  for (let node: Node | undefined = last; node?.from; node = node.from) path.push(node.move);
  return path.reverse();
}
