// Pictures of states: what a drawing draws, that each environment with pictures shows different states differently and
// equal states equally, and that pictures do not change the episode.
import { createHash } from 'node:crypto';
import { PNG } from 'pngjs';
import { describe, expect, it } from 'vitest';
import { Drawing } from '../../../envs/api/drawing';
import type { Environment, EnvironmentDefinition, Observation } from '../../../envs/api/environment';
import frozenLake from '../../../envs/frozen-lake';
import { lakePicture } from '../../../envs/frozen-lake/picture';
import game2048 from '../../../envs/game-2048';
import { gridPicture } from '../../../envs/game-2048/picture';
import rubikscube from '../../../envs/rubikscube';
import noisyLake from '../../../envs/noisy-lake/index';
import sokoban from '../../../envs/sokoban';
import sudoku from '../../../envs/sudoku';
import { pictureSizeOf } from '../../../extension/trainer/plan/environment-pictures';
import { reinterpret } from '../../support/partial';

const decode = (png: Uint8Array) => PNG.sync.read(Buffer.from(png));
const hash = (png: Uint8Array): string => {
  const { width, height, data } = decode(png);
  return createHash('sha256').update(`${width} ${height} `).update(data).digest('hex');
};

describe('a drawing', () => {
  const white = [255, 255, 255] as const;
  const black = [0, 0, 0] as const;
  /** The drawing as rows of `#` for pixels that are not white. */
  const shown = (drawing: Drawing): string[] => {
    const { width, height, data } = decode(drawing.png());
    return Array.from({ length: height }, (_, y) =>
      Array.from({ length: width }, (_, x) => (data[4 * (y * width + x)] === 255 ? '.' : '#')).join(''),
    );
  };

  it('fills rectangles and discs, and cuts them at its edges', () => {
    const drawing = new Drawing(6, 4, white);
    drawing.rectangle(-2, -1, 4, 2, black);
    drawing.disc(5, 3, 2, black);
    expect(shown(drawing)).toEqual(['##....', '....##', '...###', '...###']);
  });

  it('writes numbers in the middle of a square', () => {
    const drawing = new Drawing(9, 7, white);
    drawing.number(17, 0, 0, 7, black, 1);
    expect(shown(drawing).slice(1, 6)).toEqual(['.#..###..', '##....#..', '.#...#...', '.#...#...', '###..#...']);
    expect(() => drawing.number(-1, 0, 0, 7, black)).toThrow('-1 is no whole number from 0');
  });

  it('writes different numbers differently', () => {
    const numbers = Array.from({ length: 200 }, (_, number) => {
      const drawing = new Drawing(40, 40, white);
      drawing.number(number, 0, 0, 40, black);
      return hash(drawing.png());
    });
    expect(new Set(numbers).size).toBe(200);
  });
});

/** Environments with pictures, with a text that determines the picture, and actions. */
const environments: [
  string,
  unknown,
  object,
  (text: string) => string,
  (turn: number, seed: number) => number | string,
][] = [
  ['frozen_lake', frozenLake, { size: 5, is_slippery: false }, text => text, (turn, seed) => 1 + ((turn + seed) % 4)],
  ['game_2048', game2048, {}, text => text.split('\n').slice(1, 5).join(), (turn, seed) => (turn + seed) % 4],
  [
    'rubikscube',
    rubikscube,
    {},
    text => text.split('\n').slice(3, 9).join(),
    (turn, seed) => 1 + ((5 * turn + seed) % 12),
  ],
  [
    'sudoku',
    sudoku,
    { grid_size: 4, render_format: 'simple' },
    text => text,
    (turn, seed) => `${1 + (turn % 4)},${1 + (seed % 4)},${1 + ((turn + seed) % 4)}`,
  ],
];

describe.each(environments)('%s', (name, definition, given, stateOf, actionOf) => {
  const make = (config: object): Environment => {
    const { config: schema, create } = reinterpret<EnvironmentDefinition>(definition);
    return create(schema.parse({ ...given, ...config }));
  };
  const seen = (step: unknown): Observation => reinterpret<{ observation: Observation }>(step).observation;

  it('shows different states by different pictures, equal states by equal ones, and plays as with text', () => {
    const pictureOf = new Map<string, string>();
    for (let seed = 1; seed <= 8; seed++) {
      const [text, picture] = [make({}), make({ render_mode: 'rgb_array' })];
      let [read, drawn] = [text, picture].map(each => seen(each.reset({ seed })));
      let over = false;
      for (let turn = 0; turn < 12 && !over; turn++) {
        const { images, text: words } = drawn as { images: Uint8Array[]; text: string };
        expect([images.length, words.split('<image>').length]).toEqual([1, 2]);
        const [state, pixels] = [stateOf(read as string), hash(images[0])];
        expect(pictureOf.get(state) ?? pixels).toBe(pixels);
        pictureOf.set(state, pixels);
        const asked = picture.render!('rgb_array') as { images: Uint8Array[] };
        expect(hash(asked.images[0])).toBe(pixels);
        const [one, other] = [text, picture].map(each => each.step(actionOf(turn, seed)));
        [read, drawn] = [seen(one), seen(other)];
        const outcome = ({ observation: _, ...rest }: Record<string, unknown>) => rest;
        expect(outcome(reinterpret(other))).toEqual(outcome(reinterpret(one)));
        over = reinterpret<{ terminated: boolean }>(one).terminated;
      }
    }
    expect(pictureOf.size).toBeGreaterThan(12);
    expect(new Set(pictureOf.values()).size).toBe(pictureOf.size);
  });

  it('tells the model that the state is a picture', () => {
    const { config, instruction, legend } = reinterpret<EnvironmentDefinition>(definition);
    const shown = config.parse({ ...given, render_mode: 'rgb_array' });
    expect((instruction as (config: unknown) => string)(shown)).toMatch(/The state is a picture/);
    expect(legend?.(shown) ?? {}).toEqual({});
    expect((instruction as (config: unknown) => string)(config.parse(given))).not.toMatch(/picture/);
    expect(name).not.toBe('');
  });
});

it.each([
  ['frozen_lake', frozenLake, { size: 6 }],
  ['frozen_lake', frozenLake, {}],
  ['frozen_lake', frozenLake, { picture: 'sprites' }],
  ['noisy_lake', noisyLake, { size: 5 }],
  ['game_2048', game2048, { size: 3 }],
  ['game_2048', game2048, {}],
  ['rubikscube', rubikscube, {}],
  ['sokoban', sokoban, { dim_room: [5, 9], num_boxes: 1 }],
  ['sokoban', sokoban, { dim_room: [9, 9], dim_x: 7, dim_y: 6, num_boxes: 1 }],
  ['sokoban', sokoban, { num_boxes: 1 }],
  ['sokoban', sokoban, { num_boxes: 1, picture: 'sprites' }],
  ['sudoku', sudoku, { grid_size: 4 }],
  ['sudoku', sudoku, {}],
])('a plan knows the size of the pictures of %s', async (name, definition, given) => {
  const { config, create } = reinterpret<EnvironmentDefinition>(definition);
  const values = { ...given, render_mode: 'rgb_array' };
  const { observation } = await create(config.parse(values)).reset({ seed: 1 });
  const { width, height } = decode((observation as { images: Uint8Array[] }).images[0]);
  expect(pictureSizeOf({ env_type: name, env_config: values }, () => true)).toEqual({
    size: { width, height },
    isAssumed: false,
  });
  expect(pictureSizeOf({ env_type: name, env_config: given }, () => true)).toBeNull();
});

it('a lake shows each tile, and the player on ice, in a hole and on the goal, differently', () => {
  const tiles = (tile: number) => Uint8Array.of(0, tile, 0, 0);
  const lakes = [0, 1, 2].flatMap(tile =>
    [2, 1].map(cell => lakePicture({ size: 2, tiles: tiles(tile), start: 0 }, cell)),
  );
  expect(new Set(lakes.map(hash)).size).toBe(6);
});

it('a tile of 2048 above 2048 is still told apart by its number', () => {
  const pictures = [0, ...Array.from({ length: 17 }, (_, power) => 2 ** (power + 1))].map(tile =>
    hash(gridPicture([tile, 0, 0, 0], 2)),
  );
  expect(new Set(pictures).size).toBe(18);
});
