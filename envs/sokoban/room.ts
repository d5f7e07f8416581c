// A Sokoban room and its moves (gym-sokoban's rules). Cells are flat indices, row · width + column. Invariants: the
// room has one player and as many targets as boxes; `state` differs from `fixed` only at the player and at boxes.

export const wall = 0;
export const floor = 1;
export const target = 2;
export const boxOnTarget = 3;
export const box = 4;
export const player = 5;

export interface Room {
  height: number;
  width: number;
  /** The immovable content of each cell: `wall`, `floor` or `target`. */
  fixed: Uint8Array;
  /** The visible content of each cell: the player, a box, or else the content in `fixed`. */
  state: Uint8Array;
  player: number;
  boxes: number;
  boxesOnTarget: number;
}

/** Row and column offsets of the four moves: up, down, left, right. */
export const rowSteps = [-1, 1, 0, 0] as const;
export const columnSteps = [0, 0, -1, 1] as const;

/**
 * Moves the player (0 up, 1 down, 2 left, 3 right). A box ahead is pushed if the cell beyond it is free. Returns
 * whether the player moved.
 */
export function push(room: Room, move: number): boolean {
  const { state, fixed, width, height } = room;
  const row = Math.floor(room.player / width) + 2 * rowSteps[move];
  const column = (room.player % width) + 2 * columnSteps[move];
  if (row < 0 || row >= height || column < 0 || column >= width) return false;
  const step = rowSteps[move] * width + columnSteps[move];
  const next = room.player + step;
  if (state[next] === box || state[next] === boxOnTarget) {
    const beyond = next + step;
    if (state[beyond] !== floor && state[beyond] !== target) return false;
    if (state[next] === boxOnTarget) room.boxesOnTarget--;
    if (fixed[beyond] === target) room.boxesOnTarget++;
    state[beyond] = fixed[beyond] === target ? boxOnTarget : box;
  } else if (state[next] !== floor && state[next] !== target) return false;
  state[next] = player;
  state[room.player] = fixed[room.player];
  room.player = next;
  return true;
}
