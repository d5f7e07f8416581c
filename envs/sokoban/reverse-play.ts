// Reverse play (gym-sokoban): a depth-first search that starts from the solved room. In each move, the player takes a
// step and pulls the box behind it, if there is one. The room with the highest score becomes the room in which the
// episode starts. The score is the number of times that the player switched to another box, multiplied by the sum of
// the boxes' Manhattan distances from their targets. While a target is occupied, the score is 0. As in gym-sokoban, a
// state also records which boxes have been pulled.
import { columnSteps, rowSteps, target, wall } from './room';

const exploredLimit = 300_000;

export interface PulledRoom {
  player: number;
  /** Cell of each target's box; targets in row-major order. */
  boxes: number[];
  displacement: number;
}

/** Searches backwards from the room with a box on each target. Returns undefined if no room scores above 0. */
export function pullApart(
  fixed: Uint8Array,
  width: number,
  start: number,
  searchDepth: number,
): PulledRoom | undefined {
  const targets: number[] = [];
  for (let at = 0; at < fixed.length; at++) if (fixed[at] === target) targets.push(at);
  const boxes = targets.slice();
  /** For each cell: 0 without a box, k + 1 for the box of target k. Bit 15 is set if the box has been pulled. */
  const occupant = new Uint16Array(fixed.length);
  for (let k = 0; k < boxes.length; k++) occupant[boxes[k]] = k + 1;
  const pulledBit = 1 << 15;
  const steps = rowSteps.map((row, move) => row * width + columnSteps[move]);
  const explored = new Set<string>();
  const codes: number[] = [];
  let man = start;
  let bestScore = 0;
  let best: PulledRoom | undefined;

  /**
   * Returns the state as a string: the player's cell, then for each box its cell and whether it has been pulled, sorted
   * by cell.
   */
  const key = () => {
    codes.length = 0;
    for (const cell of boxes) {
      const code = cell * 2 + (occupant[cell] & pulledBit ? 1 : 0);
      let at = codes.length;
      while (at > 0 && codes[at - 1] > code) codes[at] = codes[--at];
      codes[at] = code;
    }
    // eslint-disable-next-line no-restricted-syntax -- 16 boxes at most
    return String.fromCharCode(man, ...codes);
  };
  const displacement = () => {
    let sum = 0;
    for (let k = 0; k < boxes.length; k++) {
      const rows = Math.floor(boxes[k] / width) - Math.floor(targets[k] / width);
      sum += Math.abs(rows) + Math.abs((boxes[k] % width) - (targets[k] % width));
    }
    return sum;
  };
  const targetsOpen = () => targets.every(cell => occupant[cell] === 0 && cell !== man);

  const search = (swaps: number, lastPulled: number, depth: number) => {
    if (depth <= 1 || explored.size >= exploredLimit) return;
    const state = key();
    if (explored.has(state)) return;
    explored.add(state);
    const moved = swaps === 0 ? 0 : displacement();
    if (swaps * moved > bestScore && targetsOpen()) {
      bestScore = swaps * moved;
      best = { player: man, boxes: boxes.slice(), displacement: moved };
    }
    for (const step of steps) {
      const from = man;
      const next = from + step;
      // The move is blocked: it leads back to the current state, which has been visited.
      if (fixed[next] === wall || occupant[next] !== 0) continue;
      const behind = from - step;
      const pulled = occupant[behind];
      man = next;
      if (pulled === 0) {
        search(swaps, lastPulled, depth - 1);
      } else {
        const k = (pulled & ~pulledBit) - 1;
        occupant[behind] = 0;
        occupant[from] = pulled | pulledBit;
        boxes[k] = from;
        search(k === lastPulled ? swaps : swaps + 1, k, depth - 1);
        occupant[from] = 0;
        occupant[behind] = pulled;
        boxes[k] = behind;
      }
      man = from;
    }
  };
  search(0, -1, searchDepth);
  return best;
}
