// An island of ice: the player walks to the goal and avoids the hole. An environment is one file with Gymnasium's
// `reset` and `step`. If the file is saved during training, the next episodes use the new code. The requirements on
// environments are listed in docs/environments/writing-your-own.md.
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { coordinateText, gridCoordText } from 'ragen-workbench/api/board-text';
import { Pcg64 } from 'ragen-workbench/api/random/pcg64';

/** Change of row and column by action id. */
const moves: Record<number, [number, number]> = { 1: [0, -1], 2: [1, 0], 3: [0, 1], 4: [-1, 0] };

export default defineEnvironment({
  name: 'island',
  config: z.strictObject({
    size: z.int().min(2).max(6).default(4).describe('rows and columns'),
    max_steps: z.int().min(1).default(10).describe('the episode is truncated after so many steps'),
  }),
  actions: { 1: 'Left', 2: 'Down', 3: 'Right', 4: 'Up' },
  instruction: 'Walk over the ice to the goal and keep out of the hole.',
  legend: () => ({ P: 'you', G: 'goal', O: 'hole', _: 'ice' }),

  create({ size, max_steps }) {
    let player = 0;
    let goal = 0;
    let hole = 0;
    let steps = 0;

    const over = () => player === goal || player === hole || steps >= max_steps;
    const symbol = (cell: number) => (cell === player ? 'P' : cell === goal ? 'G' : cell === hole ? 'O' : '_');
    const grid = () =>
      Array.from({ length: size }, (_, row) =>
        Array.from({ length: size }, (_, column) => symbol(row * size + column)).join(''),
      ).join('\n');
    /** The state as the model reads it: coordinates, then the grid. */
    const show = () => {
      const coordinates = coordinateText(size, size, [
        ['Goal', [goal]],
        ['Player', [player]],
        ['Holes', [hole]],
      ]);
      return gridCoordText(coordinates, grid());
    };
    /** The cell reached by a move; a move off the grid stops at its edge. */
    const after = (cell: number, [down, right]: [number, number]) => {
      const row = Math.min(Math.max(Math.floor(cell / size) + down, 0), size - 1);
      const column = Math.min(Math.max((cell % size) + right, 0), size - 1);
      return row * size + column;
    };

    return {
      reset({ seed }) {
        const random = new Pcg64(seed); // all randomness comes from the seed, so that episodes can be replayed
        player = random.integers(0, size * size);
        do goal = random.integers(0, size * size);
        while (goal === player);
        do hole = random.integers(0, size * size);
        while (hole === player || hole === goal);
        steps = 0;
        return { observation: show() };
      },

      step(action) {
        if (over()) throw new Error('the episode is over: call reset first');
        const before = player;
        player = after(player, moves[Number(action)]);
        steps++;
        const success = player === goal;
        return {
          observation: show(),
          reward: success ? 1 : 0,
          terminated: success || player === hole, // the task itself ended
          truncated: !success && player !== hole && steps >= max_steps, // the step limit ended the episode
          info: { success, action_is_effective: player !== before },
        };
      },
    };
  },
});
