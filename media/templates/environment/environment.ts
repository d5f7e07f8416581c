// my_environment: walk over a field with walls to the goal. Replace this by what yours is about, in a sentence or two.
//
// Saved while a run goes on, its next episodes use what you wrote. The commands "RAGEN: Play Environment" and "RAGEN:
// Check Environment" work on this file; what must hold of an environment is listed in
// docs/environments/writing-your-own.md of RAGEN Workbench.
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { Pcg64 } from 'ragen-workbench/api/random/pcg64';

/** What a run may set as `env_config`. Each key has a default, so that the environment works as it is. */
const config = z.strictObject({
  size: z.int().min(2).max(12).default(4).describe('rows and columns of the field'),
  walls: z.number().min(0).max(0.4).default(0.15).describe('share of the cells that are walls'),
  max_steps: z.int().min(1).default(20).describe('the episode is truncated after so many steps'),
  step_reward: z.number().default(-0.01).describe('what each step earns, or costs'),
});

/**
 * What the model may answer, by id; `step` is given the id. Leave `actions` out, and `step` is given the answer's text.
 */
const actions = { 1: 'Left', 2: 'Down', 3: 'Right', 4: 'Up' };

/** Change of row and column by action id. */
const moves: Record<number, [number, number]> = { 1: [0, -1], 2: [1, 0], 3: [0, 1], 4: [-1, 0] };

/** Rows of cells: '#' is a wall, '_' is free. */
type Field = string[][];
type Cell = [row: number, column: number];

export default defineEnvironment({
  name: 'my_environment',
  config,
  actions,

  // What the system message says: the task, and what an answer looks like.
  instruction:
    'You walk over a field. Reach the goal in few steps; walls stop you. Answer with your moves, for example <answer> Right || Down </answer>.',
  legend: () => ({ P: 'you', G: 'goal', '#': 'wall', _: 'free' }),

  // One environment plays one episode after another; what it knows of the present one lives in these variables.
  create({ size, walls, max_steps, step_reward }) {
    let field: Field = [];
    let player: Cell = [0, 0];
    let goal: Cell = [0, 0];
    let steps = 0;

    const reached = () => player[0] === goal[0] && player[1] === goal[1];
    const isOver = () => reached() || steps >= max_steps;

    /** What the model sees. */
    const show = () =>
      field
        .map((row, r) => row.map((cell, c) => (isAt(player, r, c) ? 'P' : isAt(goal, r, c) ? 'G' : cell)).join(''))
        .join('\n');

    return {
      // All chance comes from the seed: the episodes of a group begin alike, and every episode can be played again.
      reset({ seed }) {
        const random = new Pcg64(seed);
        do {
          field = Array.from({ length: size }, () =>
            Array.from({ length: size }, () => (random.random() < walls ? '#' : '_')),
          );
          player = [random.integers(0, size), random.integers(0, size)];
          goal = [random.integers(0, size), random.integers(0, size)];
          field[player[0]][player[1]] = '_';
          field[goal[0]][goal[1]] = '_';
        } while (reached() || !shortestWay(field, player, goal)); // drawn again until there is something to do
        steps = 0;
        return { observation: show() };
      },

      step(action) {
        if (isOver()) throw new Error('the episode is over: call reset first');
        const [rows, columns] = moves[Number(action)] ?? [0, 0];
        const next: Cell = [player[0] + rows, player[1] + columns];
        const moved = field[next[0]]?.[next[1]] === '_';
        if (moved) player = next;
        steps++;
        const success = reached();
        return {
          observation: show(),
          reward: step_reward + (success ? 1 : 0),
          terminated: success, // the task itself has ended
          truncated: !success && steps >= max_steps, // a limit has ended it
          info: { success, action_is_effective: moved }, // numbers and truth values become metrics under their names
        };
      },

      // Optional: a solver gives demonstrations to learn from, hints in play, and a proof that the task can be done.
      solve: () => (isOver() ? undefined : shortestWay(field, player, goal)),
    };
  },
});

const isAt = (cell: Cell, row: number, column: number) => cell[0] === row && cell[1] === column;

/** Ids of the actions of a shortest way, by breadth-first search; undefined where there is none. */
function shortestWay(field: Field, from: Cell, to: Cell): number[] | undefined {
  const ways = new Map([[String(from), [] as number[]]]);
  for (const [cell, way] of ways) {
    if (cell === String(to)) return way;
    const [row, column] = cell.split(',').map(Number);
    for (const [id, [rows, columns]] of Object.entries(moves)) {
      const next: Cell = [row + rows, column + columns];
      if (field[next[0]]?.[next[1]] === '_' && !ways.has(String(next))) ways.set(String(next), [...way, Number(id)]);
    }
  }
  return undefined;
}
