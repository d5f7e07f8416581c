// Pictures that are drawn once: a state's picture is drawn when it is first needed, and again only after it was dropped;
// callers get bytes of their own.
import { expect, it } from 'vitest';
import { DrawnPictures } from '../../../../envs/api/drawn-pictures';
import { drawLake } from '../../../../envs/frozen-lake/lake';
import { lakePicture } from '../../../../envs/frozen-lake/picture';

it('draws the picture of a state once, and gives each caller its own bytes', () => {
  const pictures = new DrawnPictures();
  const drawn: string[] = [];
  const get = (state: string): Uint8Array =>
    pictures.get(state, () => {
      drawn.push(state);
      return Uint8Array.of(drawn.length, 7);
    });
  const first = get('a');
  expect([...first, ...get('b')]).toEqual([1, 7, 2, 7]);
  first[0] = 9;
  expect([...get('a')]).toEqual([1, 7]);
  for (let i = 0; i < 511; i++) get(`${i}`);
  get('a');
  expect(drawn).toHaveLength(2 + 511);
  get('b'); // was not used for longest
  expect(drawn.at(-1)).toBe('b');
});

it('lakes that differ in a tile, the start or the player have pictures of their own', () => {
  const lake = drawLake(4, 0.8, 10_000);
  const cells = Array.from({ length: 16 }, (_, cell) => lakePicture(lake, cell));
  expect(new Set(cells.map(String)).size).toBe(16);
  expect(lakePicture({ ...lake, tiles: lake.tiles.slice() }, 3)).toEqual(cells[3]);
  const other = { ...lake, start: lake.tiles.findIndex((tile, at) => tile === 0 && at !== lake.start) };
  expect(lakePicture(other, 3)).not.toEqual(cells[3]);
  expect(lakePicture(lake, 3)).toEqual(cells[3]);
});
