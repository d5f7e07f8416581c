// The 2 × 2 × 2 Rubik's Cube (RAGEN): give each face a single colour. The reward is 1 when the cube is solved,
// otherwise 0; episodes are truncated at max_steps. The scramble is drawn from numpy's PCG64, so the same seed gives
// the same cube as in RAGEN. As in RAGEN, the moves of a scramble may cancel each other out.
import { z } from 'zod';
import { defineEnvironment, type Observation } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { renderMode } from '../api/render-mode';
import { isSolved, moveNames, solvedCube, turned, turns, type Cube } from './cube';
import { cubePicture } from './picture';
import { solveCube } from './solver';

const colours = 'WOGRBY';
const faces = ['Up (U):    ', 'Left (L):  ', 'Front (F): ', 'Right (R): ', 'Back (B):  ', 'Down (D):  '];
const ids = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12'] as const;

const config = z.strictObject({
  scramble_depth: z.int().min(0).max(1000).default(5).describe('number of random moves that scramble the cube'),
  max_steps: z.int().min(1).default(20).describe('number of moves after which an unfinished episode is truncated'),
  real_back_turn: z
    .boolean()
    .default(false)
    .describe('true: B turns the back face as on a real cube; false: B works as in RAGEN, where it swaps two stickers'),
  render_mode: renderMode,
  action_lookup: z
    .record(z.enum(ids), z.string())
    .default(Object.fromEntries(ids.map((id, i) => [id, moveNames[i]])) as Record<(typeof ids)[number], string>),
});

export default defineEnvironment({
  name: 'rubikscube',
  config,
  actions: config => config.action_lookup,
  instruction: ({ render_mode }) =>
    "You solve a 2x2 Rubik's Cube: every face must end up in a single colour. Moves are in Singmaster's notation: U, D, L, R, F and B turn" +
    " the upper, lower, left, right, front and back face clockwise by a quarter, each with a prime (as in U') counter-clockwise." +
    (render_mode === 'rgb_array'
      ? ' The state is a picture of the unfolded cube: the upper face above, the left, front, right and back face in a row, the lower face below.'
      : ' Each face is shown row by row.') +
    " Answer with a sequence of moves, for example <answer> R || U' </answer>.",

  create(config) {
    const tables = turns(config.real_back_turn);
    const names = ids.map(id => config.action_lookup[id]);
    let cube: Cube;
    let steps = 0;
    let ending = ''; // reason for the episode's end; empty until it has ended

    const text = () => {
      const rows = faces.map((face, i) => {
        const [a, b, c, d] = Array.from(cube.subarray(4 * i, 4 * i + 4), colour => colours[colour]);
        return `${face}[${a}, ${b}] [${c}, ${d}]`;
      });
      const last = ending
        ? [`=== Game Over: ${ending} ===`]
        : ['Available Actions:', names.join(', '), '', 'What is your next move?'];
      const title = ["=== Rubik's Cube 2x2 State ===", `Step: ${steps}/${config.max_steps}`, ''];
      return [...title, ...rows, '', ...last].join('\n');
    };

    const render = (mode: string): Observation =>
      mode === 'rgb_array' ? { text: '<image>', images: [cubePicture(cube)] } : text();

    return {
      reset({ seed }) {
        const random = new Pcg64(seed);
        cube = solvedCube();
        for (let i = 0; i < config.scramble_depth; i++) cube = turned(cube, tables[random.integers(1, 13) - 1]);
        steps = 0;
        ending = '';
        return { observation: render(config.render_mode) };
      },

      step(action) {
        const turn = typeof action === 'number' ? tables[action - 1] : undefined;
        const acts = turn !== undefined && ending === '';
        if (acts) {
          cube = turned(cube, turn);
          steps++;
          if (isSolved(cube)) ending = 'Cube Solved!';
          else if (steps >= config.max_steps) ending = 'Max steps reached.';
        }
        const success = ending !== '' && isSolved(cube);
        return {
          observation: render(config.render_mode),
          reward: acts && success ? 1 : 0,
          terminated: success,
          truncated: ending !== '' && !success,
          info: { action_is_effective: acts, action_is_valid: turn !== undefined, success },
        };
      },

      render,
      // If the moves of the scramble cancel each other out, the cube is solved at the start, but success is reported
      // only after a move. In this case, the solution is a turn and its inverse.
      solve: () => {
        if (ending !== '') return isSolved(cube) ? [] : undefined;
        return isSolved(cube) ? [1, 2] : solveCube(cube, tables)?.map(move => move + 1);
      },
    };
  },
});
