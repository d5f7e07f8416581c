// my_environment: the player walks over a field with walls to the goal. Replace this line with a description of your
// environment.
//
// If you save this file during training, the next episodes use the new code. The commands "RAGEN: Play Environment" and
// "RAGEN: Check Environment" work on this file. docs/environments/writing-your-own.md of RAGEN Workbench lists the
// requirements on environments.
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { Pcg64 } from 'ragen-workbench/api/random/pcg64';

/**
 * Parameters that a run may set as `env_config`. Each key has a default, so that the environment works without them.
 */
const config = z.strictObject({
  size: z.int().min(2).max(12).default(4).describe('rows and columns of the field'),
  walls: z.number().min(0).max(0.4).default(0.15).describe('share of the cells that are walls'),
  max_steps: z.int().min(1).default(20).describe('the episode is truncated after so many steps'),
  step_reward: z.number().default(-0.01).describe('what each step earns, or costs'),
});

/**
 * Actions by id; `step` receives the id of the model's action. Without `actions`, `step` receives the text of the
 * answer.
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

  // Part of the system message: the task and the format of an answer.
  instruction:
    'You walk over a field. Reach the goal in few steps; walls stop you. Answer with your moves, for example <answer> Right || Down </answer>.',
  legend: () => ({ P: 'you', G: 'goal', '#': 'wall', _: 'free' }),

  // An environment plays one episode at a time; these variables hold the state of the current episode.
  create({ size, walls, max_steps, step_reward }) {
    let field: Field = [];
    let player: Cell = [0, 0];
    let goal: Cell = [0, 0];
    let steps = 0;

    const reached = () => player[0] === goal[0] && player[1] === goal[1];
    const isOver = () => reached() || steps >= max_steps;

    /** The observation: the field as text. */
    const show = () =>
      field
        .map((row, r) => row.map((cell, c) => (isAt(player, r, c) ? 'P' : isAt(goal, r, c) ? 'G' : cell)).join(''))
        .join('\n');

    return {
      // All randomness comes from the seed: the episodes of a group start from the same state and can be replayed.
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
        } while (reached() || !shortestWay(field, player, goal)); // an unreachable or reached goal is drawn again
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
          terminated: success, // the task itself ended
          truncated: !success && steps >= max_steps, // the step limit ended the episode
          info: { success, action_is_effective: moved }, // numbers and booleans become metrics with these names
        };
      },

      // Optional. The solver provides demonstrations for sft and hints in play, and proves that the task is solvable.
      solve: () => (isOver() ? undefined : shortestWay(field, player, goal)),
    };
  },
});

const isAt = (cell: Cell, row: number, column: number) => cell[0] === row && cell[1] === column;

/** Action ids of a shortest path, by breadth-first search; undefined if no path exists. */
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
