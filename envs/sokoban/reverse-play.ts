// Reverse play (gym-sokoban): a depth-first search from the solved room, in which the player walks and pulls boxes. The
// room with the highest score becomes the start. Score = switches of the pulled box × summed Manhattan distance of the
// boxes from their targets, and 0 unless every target is free. A box that was pulled gives a different state from one
// never pulled, as in the visited set of the original.
import { columnSteps, rowSteps, target, wall } from './room';

const exploredLimit = 300_000;

export interface PulledRoom {
  player: number;
  /** Cell of the box that belongs to each target, targets in row-major order. */
  boxes: number[];
  displacement: number;
}

/** Plays backwards from boxes on all targets; undefined if no room scores higher than the solved one. */
export function pullApart(
  fixed: Uint8Array,
  width: number,
  start: number,
  searchDepth: number,
): PulledRoom | undefined {
  const targets: number[] = [];
  for (let at = 0; at < fixed.length; at++) if (fixed[at] === target) targets.push(at);
  const boxes = targets.slice();
  /** For each cell: 0 for no box, k + 1 for the box of target k; bit 15 marks a box that was pulled. */
  const occupant = new Uint16Array(fixed.length);
  for (let k = 0; k < boxes.length; k++) occupant[boxes[k]] = k + 1;
  const pulledBit = 1 << 15;
  const steps = rowSteps.map((row, move) => row * width + columnSteps[move]);
  const explored = new Set<string>();
  const codes: number[] = [];
  let man = start;
  let bestScore = 0;
  let best: PulledRoom | undefined;

  /** The state as a string: the player, then each box's cell with its pulled bit, sorted by cell. */
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
      if (fixed[next] === wall || occupant[next] !== 0) continue; // the state is unchanged: already visited
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
