// Pictures of rooms: the pixels of gym-sokoban's tiny world (test/golden/make/envs_sokoban_pictures.py), as observation
// and by render.
import { PNG } from 'pngjs';
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import golden from '../../../golden/envs/sokoban-pictures.json';
import type { Observation } from '../../../../envs/api/environment';
import { boardPicture } from '../../../../envs/api/picture';
import sokoban from '../../../../envs/sokoban/index';
import { createSync } from '../../../support/sync-environment';

/** Size and pixels of the only image of an observation whose text is its placeholder. */
function decoded(observation: Observation) {
  const { text, images } = observation as { text: string; images: Uint8Array[] };
  expect([text, images.length]).toEqual(['<image>', 1]);
  const { width, height, data } = PNG.sync.read(Buffer.from(images[0]));
  const pixels = data.filter((_, i) => i % 4 !== 3);
  expect(data.filter((_, i) => i % 4 === 3).every(alpha => alpha === 255)).toBe(true);
  return { width, height, pixels };
}
const hash = (pixels: Uint8Array) => createHash('sha256').update(pixels).digest('hex');

test.each(golden)('$dim, $boxes boxes, seed $seed', ({ dim, boxes, seed, moves, size, tiny, hashes }) => {
  const make = (render_mode: string) =>
    createSync(sokoban, sokoban.config.parse({ dim_room: dim, num_boxes: boxes, render_mode }));
  const shown = make('rgb_array');
  const asText = make('text');
  const seen: Observation[] = [(shown.reset({ seed }) as { observation: Observation }).observation];
  asText.reset({ seed });
  for (const move of moves) {
    const { observation, ...outcome } = shown.step(Number(move)) as { observation: Observation };
    const { observation: text, ...same } = asText.step(Number(move)) as { observation: Observation };
    expect(outcome).toEqual(same);
    expect(typeof text).toBe('string');
    seen.push(observation);
  }
  const pictures = seen.map(decoded);
  for (const { width, height } of pictures) expect([height, width]).toEqual(size);
  expect(pictures.map(({ pixels }) => hash(pixels))).toEqual(hashes);

  const [first] = pictures;
  const corners = tiny.flatMap((row, y) =>
    row.map((_, x) => [0, 1, 2].map(channel => first.pixels[3 * (16 * y * first.width + 16 * x) + channel])),
  );
  expect(corners).toEqual(tiny.flat());
  expect(decoded(asText.render!('rgb_array'))).toEqual(pictures.at(-1));
});

test('a run with an image environment explains the colours and no symbols to the model', () => {
  const config = sokoban.config.parse({ render_mode: 'rgb_array', observation_format: 'grid_coord' });
  expect(sokoban.legend!(config)).toEqual({});
  const instruction = (sokoban.instruction as (given: typeof config) => string)(config);
  expect(instruction).toContain('boxes are brown');
  expect(instruction).not.toContain('zero-indexed');
});

test('a cell is a square of its colour', () => {
  const { width, height, data } = PNG.sync.read(
    Buffer.from(
      boardPicture(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        1,
        2,
      ),
    ),
  );
  const upper = [1, 2, 3, 255, 1, 2, 3, 255];
  const lower = [4, 5, 6, 255, 4, 5, 6, 255];
  expect([width, height, ...data]).toEqual([2, 4, ...upper, ...upper, ...lower, ...lower]);
});
