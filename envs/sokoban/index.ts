// Sokoban (RAGEN; gym-sokoban's rules and rewards): push each box onto a target. The reward of a step is -0.1, plus 1
// if a box is pushed onto a target, minus 1 if a box is pushed off a target, plus 10 if all boxes are then on targets.
// The same seed gives the same room as in RAGEN.
import { z } from 'zod';
import { defineEnvironment, type Observation } from '../api/environment';
import { coordinateText, gridCoordText } from '../api/board-text';
import { relativeSentences, structuredState } from '../api/state-text';
import { pictureStyle, renderMode } from '../api/render-mode';
import { drawRoom } from './generator';
import { roomPicture } from './picture';
import { box, boxOnTarget, player, push, target, type Room } from './room';
import { solveRoom } from './solver';
import { spriteRoom } from './sprites';

const meanings = ['wall', 'empty', 'target', 'box on target', 'box', 'player', 'player on target'];

const side = z.int().min(4).max(64);

const config = z
  .strictObject({
    dim_room: z.tuple([side, side]).default([6, 6]).describe('rows, columns'),
    dim_x: side.nullable().default(null).describe('number of rows; overrides dim_room if dim_y is set too'),
    dim_y: side.nullable().default(null).describe('number of columns; overrides dim_room if dim_x is set too'),
    max_steps: z.int().min(1).default(100).describe('number of steps after which an unfinished episode is truncated'),
    num_boxes: z.int().min(1).max(16).default(3),
    search_depth: z
      .int()
      .min(2)
      .max(900)
      .default(300)
      .describe('maximum depth of the search that generates a room by playing backwards from its solution'),
    render_mode: renderMode,
    picture: pictureStyle,
    observation_format: z.enum(['grid', 'coord', 'grid_coord']).default('grid'),
    action_lookup: z
      .record(z.enum(['1', '2', '3', '4']), z.string())
      .default({ 1: 'Up', 2: 'Down', 3: 'Left', 4: 'Right' }),
    grid_lookup: z
      .record(z.enum(['0', '1', '2', '3', '4', '5', '6']), z.string())
      .default({ 0: '#', 1: '_', 2: 'O', 3: '√', 4: 'X', 5: 'P', 6: 'S' }),
    grid_vocab: z
      .record(z.string(), z.string())
      .nullable()
      .default(null)
      .describe('meaning of each symbol, for the task description; null: the default meanings are used'),
  })
  .transform(({ dim_x, dim_y, ...rest }) => {
    const dim_room: [number, number] = dim_x !== null && dim_y !== null ? [dim_x, dim_y] : rest.dim_room;
    return { ...rest, dim_room };
  });

const coordinates = ([rows, columns]: [number, number], format: string) =>
  ` The state gives ${format === 'coord' ? '' : 'the grid of symbols and '}the zero-indexed (row, column) of the player, the boxes and the targets, from (0, 0) at the top left to (${rows - 1}, ${columns - 1}) at the bottom right.`;

const inColours =
  ' The state is a picture, a square for each cell: walls are black, empty cells are white, targets are pink, boxes are brown, boxes on a' +
  ' target are orange, the player is green, and yellow on a target.';

const inSprites =
  ' The state is a picture, a square for each cell: walls are of brick, empty cells are black, targets are red frames, boxes are yellow, boxes on' +
  ' a target have a red frame, the player is green, and has a red frame on a target.';

export default defineEnvironment({
  name: 'sokoban',
  config,
  actions: config => config.action_lookup,
  legend: ({ grid_lookup, grid_vocab, observation_format, render_mode }) =>
    observation_format === 'coord' || render_mode === 'rgb_array'
      ? {}
      : (grid_vocab ?? Object.fromEntries(meanings.map((meaning, i) => [grid_lookup[`${i}` as '0'], meaning]))),
  stateForms: ({ grid_lookup }) => ({
    natural_language:
      'sentences that say how many rows above or below and how many columns left or right of the player each box and target is',
    structured:
      'a JSON object with rows and columns from 0, such as {"player": [2, 1], "box": [2, 2], "target": [3, 4]}; lists of pairs for several boxes',
    symbolic: `the grid, one row per line, with the symbols ${meanings.map((meaning, i) => `${grid_lookup[`${i}` as '0']} ${meaning}`).join(', ')}`,
  }),
  instruction: ({ dim_room, observation_format, render_mode, picture }) =>
    'You are the player of a Sokoban puzzle. Push all boxes onto the targets. To push a box, stand next to it and move towards it: box and' +
    ' player go one cell that way. Boxes cannot be pushed through walls or other boxes, and cannot be pulled.' +
    (render_mode === 'rgb_array'
      ? picture === 'sprites'
        ? inSprites
        : inColours
      : observation_format === 'grid'
        ? ''
        : coordinates(dim_room, observation_format)) +
    ' Answer with a sequence of moves, for example <answer> Right || Right || Up </answer>.',

  create(config) {
    const [height, width] = config.dim_room;
    const options = { height, width, boxes: config.num_boxes, searchDepth: config.search_depth };
    const symbols = meanings.map((_, i) => config.grid_lookup[`${i}` as '0']);
    let room: Room;
    let steps = 0;

    /** Returns the content that a cell displays, as an index into `meanings`. */
    const seen = (at: number) => (room.state[at] === player && room.fixed[at] === target ? 6 : room.state[at]);
    const grid = () => {
      let text = '';
      for (let at = 0; at < room.state.length; at++) {
        if (at > 0 && at % width === 0) text += '\n';
        text += symbols[seen(at)];
      }
      return text;
    };
    const picture = (): Observation => {
      const cells = Array.from(room.state, (_, at) => seen(at));
      return {
        text: '<image>',
        images: [config.picture === 'sprites' ? spriteRoom(cells, width) : roomPicture(cells, width)],
      };
    };
    const coord = () => {
      const cells = (kind: number, of = room.state) => [...of.keys()].filter(at => of[at] === kind);
      return coordinateText(height, width, [
        ['Targets', cells(target, room.fixed)],
        ['Boxes', cells(box)],
        ['Boxes on target', cells(boxOnTarget)],
        [room.fixed[room.player] === target ? 'Player on target' : 'Player', [room.player]],
      ]);
    };
    const render = (mode: string): Observation => {
      if (mode === 'rgb_array') return picture();
      return mode === 'coord' ? coord() : mode === 'grid_coord' ? gridCoordText(coord(), grid()) : grid();
    };
    const shown = config.render_mode === 'text' ? config.observation_format : config.render_mode;

    return {
      reset({ seed }) {
        room = drawRoom(options, seed);
        steps = 0;
        return { observation: render(shown) };
      },

      step(action) {
        const ended = room.boxesOnTarget === room.boxes || steps >= config.max_steps;
        const valid = !ended && (action === 1 || action === 2 || action === 3 || action === 4);
        const before = room.boxesOnTarget;
        const moved = valid && push(room, action - 1);
        if (valid) steps++;
        const success = room.boxesOnTarget === room.boxes;
        let reward = valid ? -0.1 : 0;
        if (room.boxesOnTarget !== before) reward += room.boxesOnTarget > before ? 1 : -1;
        if (valid && success) reward += 10;
        return {
          observation: render(shown),
          reward,
          terminated: success,
          truncated: !success && steps >= config.max_steps,
          info: { action_is_effective: moved, action_is_valid: valid, success },
        };
      },

      render,
      state(form) {
        if (form === 'symbolic') return grid();
        const cells = (wanted: (at: number) => boolean) => [...room.state.keys()].filter(wanted);
        const boxes = cells(at => room.state[at] === box || room.state[at] === boxOnTarget);
        const targets = cells(at => room.fixed[at] === target);
        const things = [
          ['box', boxes],
          ['target', targets],
        ] as const;
        return form === 'structured'
          ? structuredState(width, [['player', [room.player]], ...things])
          : relativeSentences(width, room.player, things);
      },
      solve: () => solveRoom(room)?.map(move => move + 1),
    };
  },
});
