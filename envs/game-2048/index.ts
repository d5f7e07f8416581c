// 2048 (RAGEN): slide all tiles to one side and merge equal tiles; after each move a 2 or a 4 appears. The reward of a
// move is the sum s of the tiles that result from merging or, with `use_log_reward`, 0.1 · log2(1 + s). New tiles are
// drawn from numpy's PCG64, so equal seeds and moves give the same games as in RAGEN. There is no solver, because tiles
// appear at random and reaching 2048 takes about a thousand moves.
import { z } from 'zod';
import { defineEnvironment, type Observation } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { renderMode } from '../api/render-mode';
import { gridPicture } from './picture';
import { largestTile, linesOf, moveNames, slide } from './grid';

/** The tile that counts as success if `goal` is null. */
const usualGoal = 2048;

const config = z.strictObject({
  size: z.int().min(2).max(8).default(4).describe('number of rows, which is also the number of columns'),
  two_prob: z.number().min(0).max(1).default(0.9).describe('probability that a new tile is a 2; otherwise it is a 4'),
  use_log_reward: z
    .boolean()
    .default(true)
    .describe(
      'true: the reward of a move is log2(1 + sum of merged tiles) / 10; false: the reward is the sum of merged tiles',
    ),
  invalid_act_score: z
    .number()
    .default(-0.1)
    .describe('reward of a move that changes nothing; if use_log_reward is true, this reward is 0'),
  goal: z
    .int()
    .min(4)
    .nullable()
    .default(null)
    .describe(
      'tile that ends the game with success, for short games on small grids; null: the game goes on until no move is possible, and is a success if it has reached 2048, as in RAGEN',
    ),
  render_mode: renderMode,
  observation_format: z.literal('grid').default('grid'),
  action_lookup: z
    .record(z.enum(['0', '1', '2', '3']), z.string())
    .default({ 0: moveNames[0], 1: moveNames[1], 2: moveNames[2], 3: moveNames[3] }),
});

export default defineEnvironment({
  name: 'game_2048',
  config,
  actions: config => config.action_lookup,
  instruction: ({ size, action_lookup: names, render_mode }) =>
    `You play 2048 on a grid of ${size} by ${size} cells. A move slides all tiles to one side, and equal tiles that meet merge into` +
    ' their sum; then a new tile appears. A move that changes nothing is no valid move.' +
    (render_mode === 'rgb_array' ? ' The state is a picture of the grid.' : '') +
    ` Answer with one move, ${names[0]}, ${names[1]}, ${names[2]} or ${names[3]}, for example <answer> ${names[3]} </answer>.`,

  create(config) {
    const { size } = config;
    const lines = linesOf(size);
    const names = moveNames.map((_, move) => config.action_lookup[`${move}` as '0']);
    let grid: number[] = [];
    let open: boolean[] = []; // for each move: whether the move would change the grid
    let score = 0;
    let tiles: Pcg64;

    const spawn = () => {
      const empty = [...grid.keys()].filter(cell => grid[cell] === 0);
      const cell = empty[tiles.integers(0, empty.length)];
      grid[cell] = tiles.random() < config.two_prob ? 2 : 4;
      open = lines.map(way => slide(grid, way).moved);
    };
    const hasGoal = () => largestTile(grid) >= (config.goal ?? usualGoal);
    /** Whether the game has ended: no move is possible or, with `goal`, the goal is reached. */
    const isOver = () => !open.includes(true) || (config.goal !== null && hasGoal());
    const rows = () => Array.from({ length: size }, (_, row) => grid.slice(row * size, (row + 1) * size));
    const text = () => {
      const moves = names.map((name, move) => `${move}(${name})`).filter((_, move) => open[move]);
      return [
        'Current 2048 Grid:',
        ...rows().map((row, i) => `Row ${i + 1}: [${row.join(', ')}]`),
        '',
        `Valid Actions: ${moves.join(', ') || 'None'}.`,
        `Goal: Merge same numbers to reach ${config.goal ?? usualGoal}.`,
        `Current Score: ${score}`,
        'What is your next move?',
      ].join('\n');
    };
    const render = (mode: string): Observation =>
      mode === 'rgb_array' ? { text: '<image>', images: [gridPicture(grid, size)] } : text();
    const state = (raw_reward: number) => ({
      score,
      raw_reward,
      max_tile: largestTile(grid),
      grid: rows(),
      action_mask: open,
    });

    return {
      reset({ seed }) {
        tiles = new Pcg64(seed);
        grid = new Array<number>(size * size).fill(0);
        score = 0;
        spawn();
        spawn();
        return { observation: render(config.render_mode), info: state(0) };
      },

      step(action) {
        const way = typeof action === 'number' ? lines[action] : undefined;
        const over = isOver();
        const { grid: after, merged, moved } = way && !over ? slide(grid, way) : { grid, merged: 0, moved: false };
        if (moved) {
          grid = after;
          score += merged;
          spawn();
        }
        const raw = moved ? merged : way && !over ? config.invalid_act_score : 0;
        const terminated = isOver();
        return {
          observation: render(config.render_mode),
          reward: !config.use_log_reward ? raw : raw > 0 ? Math.log2(raw + 1) * 0.1 : 0,
          terminated,
          truncated: false,
          info: {
            action_is_effective: moved,
            action_is_valid: moved,
            success: terminated && hasGoal(),
            ...state(raw),
          },
        };
      },

      render,
    };
  },
});
