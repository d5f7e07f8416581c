// Pictures of Sokoban and FrozenLake with sprites: the pixels that gym-sokoban and Gymnasium draw
// (test/golden/make/envs_sprites.py), as observation and by render, and what happens without the images. The images of
// Gymnasium 0.29 to 1.3 are other authors' and not in this repository, so its renderer is compared on stand-ins, and
// with its images if the variable GYMNASIUM_IMAGES names their folder.
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import golden from '../../golden/envs/sprites.json';
import { MissingDependency, type Observation } from '../../../envs/api/environment';
import frozenLake from '../../../envs/frozen-lake';
import noisyLake from '../../../envs/noisy-lake';
import sokoban from '../../../envs/sokoban';
import { spriteRoom } from '../../../envs/sokoban/sprites';
import { pictureSizeOf } from '../../../extension/trainer/plan/environment-pictures';
import { root } from '../../support/bundles';
import { createSync } from '../../support/sync-environment';

const pictures = join(root, 'test/golden/envs/sprites');
const standIns = join(pictures, 'stand-ins');
const shown = { render_mode: 'rgb_array', picture: 'sprites' };

const pixelsOf = (png: Uint8Array): Buffer => {
  const { data } = PNG.sync.read(Buffer.from(png));
  return Buffer.from(data.filter((_, i) => i % 4 !== 3));
};
const hash = (png: Uint8Array) => createHash('sha256').update(pixelsOf(png)).digest('hex').slice(0, 16);

/** The only picture of an observation whose text is its placeholder. */
function pictureOf(observation: Observation): Uint8Array {
  const { text, images } = observation as { text: string; images: Uint8Array[] };
  expect([text, images.length]).toEqual(['<image>', 1]);
  return images[0];
}

/** The pictures of an episode; each must also be what `render` gives. */
function seen(environment: ReturnType<typeof createSync>, seed: number, moves: readonly number[]): Uint8Array[] {
  const first = environment.reset({ seed }) as { observation: Observation };
  const observations = [first, ...moves.map(move => environment.step(move) as { observation: Observation })];
  const found = observations.map(({ observation }) => pictureOf(observation));
  expect(pictureOf(environment.render!('rgb_array'))).toEqual(found.at(-1));
  return found;
}

describe('sokoban', () => {
  const [episodes, boards] = [golden.sokoban.filter(row => row.dim), golden.sokoban.filter(row => row.cells)];

  test.each(episodes)('$dim, $boxes boxes, seed $seed', ({ dim, boxes, seed, moves, hashes }) => {
    const values = { ...shown, dim_room: dim, num_boxes: boxes };
    const found = seen(createSync(sokoban, sokoban.config.parse(values)), seed!, [...moves!].map(Number));
    expect(found.map(hash)).toEqual(hashes);
    const { width, height } = PNG.sync.read(Buffer.from(found[0]));
    expect(pictureSizeOf({ env_type: 'sokoban', env_config: values }, () => true)!.size).toEqual({ width, height });
  });

  test('every content of a cell', () => {
    expect(new Set(boards.flatMap(({ cells }) => cells!.flat()))).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    const drawn = boards.map(({ cells }) => spriteRoom(cells!.flat(), cells![0].length));
    expect(drawn.map(hash)).toEqual(boards.flatMap(({ hashes }) => hashes));
    expect(pixelsOf(drawn.at(-1)!)).toEqual(pixelsOf(readFileSync(join(pictures, 'sokoban.png'))));
  });
});

describe('frozen_lake', () => {
  const lake = (size: number, sprites_folder: string | null, definition: typeof frozenLake = frozenLake) =>
    createSync(definition, definition.config.parse({ ...shown, size, p: 0.8, is_slippery: false, sprites_folder }));
  const images = process.env.GYMNASIUM_IMAGES;

  test.each([
    ["Gymnasium 1.4's", 'gymnasium-1.4', null],
    ["stand-ins of Gymnasium 1.3's", 'stand-ins', standIns],
    ...(images === undefined ? [] : [["Gymnasium 1.3's", 'gymnasium-1.3', images] as const]),
  ] as const)('images: %s', (_, part, folder) => {
    const last: Uint8Array[] = [];
    for (const { size, seed, moves, hashes } of golden[part]) {
      const found = seen(
        lake(size, folder),
        seed,
        [...moves].map(move => Number(move) + 1),
      );
      expect([size, seed, ...found.map(hash)]).toEqual([size, seed, ...hashes]);
      if (size === 4) last.push(found.at(-1)!);
      const { width, height } = PNG.sync.read(Buffer.from(found[0]));
      const values = { ...shown, size, sprites_folder: folder };
      expect(pictureSizeOf({ env_type: 'frozen_lake', env_config: values }, () => true)!.size).toEqual({
        width,
        height,
      });
    }
    if (part === 'gymnasium-1.3') return; // its pictures are not in this repository either
    const file = part === 'stand-ins' ? 'stand-ins.png' : 'frozen-lake.png';
    expect(pixelsOf(last.at(-1)!)).toEqual(pixelsOf(readFileSync(join(pictures, file))));
  });

  test('an episode begins facing down, however the one before it ended', () => {
    const environment = lake(4, standIns);
    const [first] = seen(environment, 1, []);
    const [, up] = seen(environment, 1, [4]);
    expect(seen(environment, 1, [])).toEqual([first]);
    expect(up).not.toEqual(first);
  });

  test('a built-in environment that wraps it finds the images, too', () => {
    const { seed, hashes } = golden['gymnasium-1.4'][0];
    const wrapped = createSync(noisyLake, noisyLake.config.parse({ ...shown, size: 4, p: 0.8, is_slippery: false }));
    expect(seen(wrapped, seed, []).map(hash)).toEqual(hashes.slice(0, 1));
  });

  const missing = (folder: string): MissingDependency => {
    try {
      void frozenLake.dependencies!(frozenLake.config.parse({ ...shown, sprites_folder: folder }));
    } catch (error) {
      if (error instanceof MissingDependency) return error;
      throw error;
    }
    throw new Error('no error');
  };

  test('a folder without the images, or with a file that is none, is named with the remedy', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ragen-sprites-'));
    try {
      const absent = missing(folder);
      expect(absent.message).toContain(`cannot read the image ${join(folder, 'ice.png')} (ENOENT`);
      expect(absent.remedy).toMatch(/^set env_config\.sprites_folder to the folder gymnasium\/envs\/toy_text\/img/);
      cpSync(standIns, folder, { recursive: true });
      expect(() => missing(folder)).toThrow('no error');
      const other = mkdtempSync(join(folder, 'other-'));
      cpSync(standIns, other, { recursive: true });
      writeFileSync(join(other, 'stool.png'), 'no image');
      expect(missing(other).message).toMatch(/stool\.png is not a PNG image/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test.each([
  ['sokoban', sokoban, /walls are of brick/],
  ['frozen_lake', frozenLake, /the goal is a red flag/],
])('the model of %s is told what the sprites show', (_, { instruction, config, legend }, words) => {
  const told = (values: object) =>
    (instruction as (config: unknown) => string)(config.parse({ render_mode: 'rgb_array', ...values }));
  expect(told({ picture: 'sprites' })).toMatch(words);
  expect(told({})).not.toMatch(words);
  expect((legend as (config: unknown) => object)(config.parse(shown))).toEqual({});
});
