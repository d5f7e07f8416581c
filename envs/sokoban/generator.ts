// RAGEN's room generator, which is based on gym-sokoban's. It carves floor by a random walk, places the player and the
// targets, and puts a box on each target. It then plays backwards by pulling boxes, and uses the room with the highest
// score (reverse-play.ts). CPython's `random` draws the walks; numpy's legacy generator draws the placement. Both
// generators are seeded with the room's seed, so the same seed gives the same room as in RAGEN. RAGEN derives a
// fallback seed from Python's salted string hash; this generator uses an unsalted hash, so that a room does not depend
// on the process.
import { NumpyLegacy } from '../api/random/numpy-legacy';
import { PythonRandom } from '../api/random/python-random';
import { pullApart } from './reverse-play';
import { box, columnSteps, floor, player, rowSteps, target, wall, type Room } from './room';

export interface RoomOptions {
  height: number;
  width: number;
  boxes: number;
  searchDepth: number;
}

const triesPerSeed = 4;
const seedsToTry = 100;
const turnProbability = 0.35;

/** Each stamp lists the cells that become floor around the walker, as (row, column) offsets. */
const stamps: readonly (readonly (readonly [number, number])[])[] = [
  [
    [0, -1],
    [0, 0],
    [0, 1],
  ],
  [
    [-1, 0],
    [0, 0],
    [1, 0],
  ],
  [
    [0, -1],
    [0, 0],
    [1, 0],
  ],
  [
    [0, -1],
    [0, 0],
    [1, -1],
    [1, 0],
  ],
  [
    [0, 0],
    [0, 1],
    [1, 0],
  ],
];
const walkDirections = [
  [1, 0],
  [0, 1],
  [-1, 0],
  [0, -1],
] as const;

/**
 * Returns the room for a seed. The seed is an integer in [0, 2³²).
 * @throws Error if none of 100 seeds yields a room with the size and the number of boxes in `options`
 */
export function drawRoom(options: RoomOptions, seed: number): Room {
  for (let tried = 0, from = seed; tried < seedsToTry; tried++, from = nextSeed(from)) {
    const room = tryRoom(options, from);
    if (room) return room;
  }
  const { height, width, boxes, searchDepth } = options;
  throw new Error(
    `no room of ${height} x ${width} with ${boxes} boxes and search_depth ${searchDepth} was found from seed ${seed}: lower num_boxes, enlarge dim_room or raise search_depth`,
  );
}

/** The seed that is tried next if `seed` yields no room: the FNV-1a hash of its decimal digits. */
export function nextSeed(seed: number): number {
  let hash = 0x811c9dc5;
  for (const digit of String(seed)) hash = Math.imul(hash ^ digit.charCodeAt(0), 0x01000193);
  return hash >>> 0;
}

function tryRoom(options: RoomOptions, seed: number): Room | undefined {
  const random = new PythonRandom(seed);
  const placement = new NumpyLegacy(seed);
  const { height, width, boxes } = options;
  for (let attempt = 0; attempt < triesPerSeed; attempt++) {
    const fixed = carve(height, width, random);
    const start = placeBoxes(fixed, boxes, placement);
    if (start === undefined) return undefined; // as in RAGEN, no further attempt with this seed
    const pulled = pullApart(fixed, width, start, options.searchDepth);
    if (!pulled) continue;
    const room: Room = {
      height,
      width,
      fixed,
      state: Uint8Array.from(fixed),
      player: pulled.player,
      boxes,
      boxesOnTarget: 0,
    };
    for (const cell of pulled.boxes) room.state[cell] = box;
    room.state[room.player] = player;
    wander(room, pulled.displacement === 1 ? 0.8 : 0.5, random);
    return room;
  }
  return undefined;
}

function carve(height: number, width: number, random: PythonRandom): Uint8Array {
  const cells = new Uint8Array(height * width);
  let direction = random.choice(walkDirections);
  let row = random.randint(1, height - 1);
  let column = random.randint(1, width - 1);
  for (let steps = Math.trunc(1.7 * (height + width)); steps > 0; steps--) {
    if (random.random() < turnProbability) direction = random.choice(walkDirections);
    row = Math.max(Math.min(row + direction[0], height - 2), 1);
    column = Math.max(Math.min(column + direction[1], width - 2), 1);
    for (const [down, right] of random.choice(stamps)) cells[(row + down) * width + column + right] = floor;
  }
  for (let at = 0; at < cells.length; at++) {
    const edge = at < width || at >= cells.length - width || at % width === 0 || at % width === width - 1;
    if (edge) cells[at] = wall;
  }
  return cells;
}

/**
 * Chooses random cells for the targets and the player. Returns the player's cell; undefined if too few floor cells
 * exist.
 */
function placeBoxes(fixed: Uint8Array, boxes: number, random: NumpyLegacy): number | undefined {
  const free: number[] = [];
  for (let at = 0; at < fixed.length; at++) if (fixed[at] === floor) free.push(at);
  if (free.length <= boxes + 1) return undefined;
  const [start] = free.splice(random.randint(0, free.length), 1);
  for (let placed = 0; placed < boxes; placed++) {
    const [cell] = free.splice(random.randint(0, free.length), 1);
    fixed[cell] = target;
  }
  return start;
}

/**
 * Moves the player by up to three random steps, so that the player does not always start next to a box. RAGEN added
 * this to gym-sokoban's procedure.
 */
function wander(room: Room, probability: number, random: PythonRandom): void {
  if (random.random() > probability) return;
  const { state, fixed, width } = room;
  const passed = [room.player];
  for (let steps = 1; steps <= 3; steps++) {
    const open: number[] = [];
    for (let move = 0; move < 4; move++) {
      const next = room.player + rowSteps[move] * width + columnSteps[move];
      if ((state[next] === floor || state[next] === target) && !passed.includes(next)) open.push(next);
    }
    if (open.length === 0) return;
    state[room.player] = fixed[room.player];
    room.player = random.choice(open);
    state[room.player] = player;
    passed.push(room.player);
    if (steps === 3 || random.random() > 0.5) return;
  }
}
