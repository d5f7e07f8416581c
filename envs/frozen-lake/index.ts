// FrozenLake (RAGEN; Gymnasium's toy_text): walk over ice to the goal and avoid holes; on slippery ice the player may
// move sideways. The reward is 1 at the goal, otherwise 0. Random slips are drawn from numpy's PCG64. Each reset seeds
// this generator with the group's seed. Therefore all members of a group draw the same random number in the same step,
// as in RAGEN.
import { z } from 'zod';
import { defineEnvironment, type Observation } from '../api/environment';
import { coordinateText, gridCoordText } from '../api/board-text';
import { Pcg64 } from '../api/random/pcg64';
import { relativeSentences, structuredState } from '../api/state-text';
import { pictureStyle, renderMode } from '../api/render-mode';
import { drawnMove, dynamics } from './dynamics';
import { drawLake, goal, hole, moved, type Lake } from './lake';
import { lakePicture } from './picture';
import { bestMoves, plan } from './solver';
import { checkSprites, spriteLake } from './sprites';

const meanings = ['player', 'empty', 'hole', 'goal', 'player in hole', 'player on goal'];

const config = z.strictObject({
  size: z.int().min(2).max(64).default(4),
  p: z.number().min(0).max(1).default(0.9).describe('probability that a tile is frozen'),
  success_rate: z
    .number()
    .min(0)
    .max(1)
    .default(0.8)
    .describe('probability that a move goes in the intended direction'),
  is_slippery: z.boolean().default(true),
  map_seed: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe('seed of one map that all episodes share; null: the seed of an episode determines its map'),
  render_mode: renderMode,
  picture: pictureStyle,
  sprites_folder: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'folder gymnasium/envs/toy_text/img of Gymnasium 0.29 to 1.3, for sprites with its elf; null: the sprites of Gymnasium 1.4',
    ),
  observation_format: z.enum(['grid', 'coord', 'grid_coord']).default('grid'),
  action_lookup: z
    .record(z.enum(['1', '2', '3', '4']), z.string())
    .default({ 1: 'Left', 2: 'Down', 3: 'Right', 4: 'Up' }),
  grid_lookup: z
    .record(z.enum(['0', '1', '2', '3', '4', '5']), z.string())
    .default({ 0: 'P', 1: '_', 2: 'O', 3: 'G', 4: 'X', 5: '√' }),
  grid_vocab: z
    .record(z.string(), z.string())
    .nullable()
    .default(null)
    .describe('meaning of each symbol, for the task description; null: the default meanings are used'),
});

const coordinates = (size: number) =>
  ` The state gives the zero-indexed (row, column) of the start, the goal, the player and the holes, from (0, 0) at the top left to (${size - 1}, ${size - 1}) at the bottom right.`;

const inPicture =
  ' The state is a picture, a square for each tile: holes are dark blue, the goal is a red present, and the player wears green.';

const inSprites =
  ' The state is a picture, a square for each tile: holes are dark blue, the goal is a red flag, the start has the letter S, and the player' +
  ' is a grey figure, of whom nothing is seen in a hole.';
const inElfSprites =
  ' The state is a picture, a square for each tile: holes are blue, the goal is a present, the start is a stool, and the player is an elf in' +
  ' green, of whom cracks in a hole are left.';

type Shown = Pick<z.infer<typeof config>, 'picture' | 'sprites_folder'>;
const pictureText = ({ picture, sprites_folder }: Shown): string =>
  picture === 'tiles' ? inPicture : sprites_folder === null ? inSprites : inElfSprites;

export default defineEnvironment({
  name: 'frozen_lake',
  config,
  actions: config => config.action_lookup,
  legend: ({ grid_lookup, grid_vocab, observation_format, render_mode }) =>
    observation_format === 'coord' || render_mode === 'rgb_array'
      ? {}
      : (grid_vocab ?? Object.fromEntries(meanings.map((meaning, i) => [grid_lookup[`${i}` as '0'], meaning]))),
  stateForms: ({ grid_lookup }) => ({
    natural_language:
      'sentences that say how many rows above or below and how many columns left or right of the player the goal and each hole is',
    structured: 'a JSON object with rows and columns from 0, such as {"player": [0, 1], "goal": [3, 3]}',
    symbolic: `the grid, one row per line, with the symbols ${meanings.map((meaning, i) => `${grid_lookup[`${i}` as '0']} ${meaning}`).join(', ')}`,
  }),
  instruction: ({ size, is_slippery, observation_format, render_mode, ...shown }) =>
    'You are on a frozen lake. Walk to the goal and keep out of the holes.' +
    (is_slippery ? ' The ice is slippery: a move may carry you sideways.' : '') +
    (render_mode === 'rgb_array' ? pictureText(shown) : observation_format === 'grid' ? '' : coordinates(size)) +
    ' Answer with your moves, for example <answer> Right || Down </answer>.',

  dependencies: ({ render_mode, picture, sprites_folder }) => {
    if (render_mode === 'rgb_array' && picture === 'sprites') checkSprites(sprites_folder);
  },

  create(config) {
    const { size, picture, sprites_folder, render_mode } = config;
    const showsMove = render_mode === 'rgb_array' && picture === 'sprites' && sprites_folder !== null; // the elf turns
    const ice = dynamics(config.is_slippery, config.success_rate);
    const symbols = meanings.map((_, i) => config.grid_lookup[`${i}` as '0']);
    let lake: Lake;
    let drawn: number | undefined; // seed for which `lake` was drawn
    let cell = 0;
    let move: number | undefined; // the last action
    let observations: Observation[] = []; // observations of `lake` by the player's cell and, if it is shown, the last action
    let slips: Pcg64;
    let best: Int8Array | undefined; // best moves on `lake`, computed at the first `solve`

    const cellsOf = (tile: number) => [...lake.tiles.keys()].filter(at => lake.tiles[at] === tile);
    const grid = () => {
      let text = '';
      for (let at = 0; at < lake.tiles.length; at++) {
        const tile = lake.tiles[at];
        if (at > 0 && at % size === 0) text += '\n';
        text += symbols[at !== cell ? tile + 1 : tile === hole ? 4 : tile === goal ? 5 : 0];
      }
      return text;
    };
    const coord = () => {
      const tile = lake.tiles[cell];
      const player = tile === goal ? 'Player on goal' : tile === hole ? 'Player in hole' : 'Player';
      return coordinateText(size, size, [
        ['Start', [lake.start]],
        ['Goal', cellsOf(goal)],
        [player, [cell]],
        ['Holes', cellsOf(hole)],
      ]);
    };
    const pictured = () =>
      picture === 'sprites' ? spriteLake(lake, cell, move, sprites_folder) : lakePicture(lake, cell);
    const render = (mode: string): Observation =>
      mode === 'rgb_array'
        ? { text: '<image>', images: [pictured()] }
        : mode === 'coord'
          ? coord()
          : mode === 'grid_coord'
            ? gridCoordText(coord(), grid())
            : grid();

    const shown = render_mode === 'text' ? config.observation_format : render_mode;
    const observation = () => (observations[5 * cell + (showsMove ? (move ?? 4) : 0)] ??= render(shown));

    return {
      reset({ seed }) {
        const mapSeed = config.map_seed ?? seed;
        if (mapSeed !== drawn) {
          lake = drawLake(size, config.p, mapSeed);
          drawn = mapSeed;
          observations = [];
          best = undefined;
        }
        slips = new Pcg64(seed);
        slips.random(); // one draw for the initial state, as in Gymnasium
        cell = lake.start;
        move = undefined;
        return { observation: observation() };
      },

      step(action) {
        const valid = action === 1 || action === 2 || action === 3 || action === 4;
        const before = cell;
        const ended = lake.tiles[cell] === goal || lake.tiles[cell] === hole;
        if (valid) {
          const uniform = slips.random();
          move = action - 1;
          if (!ended) cell = moved(cell, drawnMove(ice[action - 1], uniform), size);
        }
        const tile = lake.tiles[cell];
        const success = tile === goal;
        return {
          observation: observation(),
          reward: success && !ended ? 1 : 0,
          terminated: success || tile === hole,
          truncated: false,
          info: { action_is_effective: cell !== before, action_is_valid: valid, success },
        };
      },

      render,
      state(form) {
        if (form === 'symbolic') return grid();
        if (form === 'structured')
          return structuredState(size, [
            ['player', [cell]],
            ['goal', cellsOf(goal)],
          ]);
        return relativeSentences(size, cell, [
          ['goal', cellsOf(goal)],
          ['hole', cellsOf(hole)],
        ]);
      },
      solve: () => plan((best ??= bestMoves(lake, ice)), size, cell)?.map(move => move + 1),
    };
  },
});
