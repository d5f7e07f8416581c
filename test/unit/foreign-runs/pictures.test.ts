// Pictures of VAGEN's rollouts: copied into the run folder, and sent to the page as data URLs. Other files, large files
// and links are not.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { expect, it } from 'vitest';
import { mostPictureBytes, pictureType } from '../../../extension/common/picture-type';
import type { Episode } from '../../../extension/run-data/episode';
import { withPictures } from '../../../extension/node/episode-pictures';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

/** A copy of a sample, whose files can be changed. */
function copied(sample: string): string {
  const folder = join(workspace(), 'vagen');
  cpSync(join(samples, 'vagen', sample), folder, { recursive: true });
  return folder;
}
const rolloutFolder = 'eval_frozenlake/tag_frozenlake_test/FrozenLake_seed_0';
const picture = (size = 16, shade = 0): Buffer => {
  const png = new PNG({ width: size, height: size });
  png.data.fill(shade);
  return PNG.sync.write(png);
};

it('an evaluation’s pictures belong to the turns of their names', async () => {
  const folder = copied('rollouts');
  const images = join(folder, rolloutFolder, 'images');
  writeFileSync(join(images, 'turn_02_01.png'), picture(16, 200));
  writeFileSync(join(images, 'turn_09_01.png'), picture());
  const { episodes, folder: run } = await attachOnce(workspace(), folder);
  const [episode] = episodes['val-000000'];
  expect(episode.turns.map(({ pictures }) => pictures?.length)).toEqual([1, 1]);
  expect(episode.turns[0].state).toContain('[image]');
  const copies = readdirSync(run.file('pictures/val-000000')).sort();
  expect(copies).toEqual(episode.turns.flatMap(({ pictures }) => pictures).sort());
  const shown = await withPictures(run.path, episode);
  const [url] = shown.turns[0].pictures ?? [];
  const original = readFileSync(join(samples, 'vagen/rollouts', rolloutFolder, 'images/turn_01_01.png'));
  expect(url).toBe(`data:image/png;base64,${original.toString('base64')}`);
});

it('training pictures belong to the lines of the dump, in the order of the placeholders', async () => {
  const { episodes, folder: run } = await attachOnce(workspace(), copied('rollout_data'));
  const [first, second] = episodes['step-000001'];
  expect(first.turns[0]).toMatchObject({
    state: 'Turn 1:\nState:\n[image]',
    pictures: [expect.stringMatching(/\.png$/)],
  });
  expect(second.turns[0].pictures).toBeUndefined();
  expect(existsSync(run.file('pictures/step-000002'))).toBe(false);
});

it('files that are no pictures, too large, or links are not copied', async () => {
  const folder = copied('rollouts');
  const image = join(folder, rolloutFolder, 'images/turn_01_01.png');
  const read = async (): Promise<Episode> => {
    const { episodes } = await attachOnce(workspace(), folder);
    return episodes['val-000000'][0];
  };
  const bytes = readFileSync(image);
  for (const strange of [
    Buffer.from('<svg onload="alert(1)"/>'),
    Buffer.concat([bytes, Buffer.alloc(mostPictureBytes)]),
  ]) {
    writeFileSync(image, strange);
    expect((await read()).turns[0].pictures).toEqual([null]);
  }
  writeFileSync(join(workspace(), 'secret.png'), bytes);
  rmSync(image);
  symlinkSync(join(workspace(), 'secret.png'), image);
  expect((await read()).turns[0].pictures).toBeUndefined();
});

it('a page gets only pictures of the episode’s own folder', async () => {
  const { episodes, folder: run } = await attachOnce(workspace(), copied('rollouts'));
  const [episode] = episodes['val-000000'];
  const [name] = episode.turns[0].pictures as [string];
  const shown = async (pictures: (string | null)[]): Promise<unknown> => {
    const { turns } = await withPictures(run.path, { ...episode, turns: [{ ...episode.turns[0], pictures }] });
    return turns[0].pictures;
  };
  expect(await shown([name, null, `../val-000000/${name}`, '../../manifest.json', 'f'.repeat(40) + '.png'])).toEqual([
    expect.stringMatching(/^data:image\/png/),
    ...[null, null, null, null],
  ]);
  const file = run.file(`pictures/val-000000/${name}`);
  renameSync(file, run.file('elsewhere.png'));
  symlinkSync('/etc/hostname', file);
  expect(await shown([name])).toEqual([null]);
  rmSync(file);
  writeFileSync(file, 'no picture');
  expect(await shown([name])).toEqual([null]);
  const plain = { ...episode, turns: [{ ...episode.turns[0], pictures: undefined }] };
  expect(await withPictures(run.path, plain)).toBe(plain);
});

it('pictures are recognised by their first bytes, with their size', () => {
  expect(pictureType(picture(48))).toEqual({ type: 'png', width: 48, height: 48 });
  const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0000b08002000400101110000', 'hex');
  expect(pictureType(jpeg)).toEqual({ type: 'jpg', width: 64, height: 32 });
  const large = picture();
  large.writeUInt32BE(5000, 16);
  expect(pictureType(large)).toBeUndefined();
  for (let length = 0; length < 33; length++) expect(pictureType(picture().subarray(0, length))).toBeUndefined();
  for (let length = 0; length < 29; length++) expect(pictureType(jpeg.subarray(0, length))).toBeUndefined();
  expect(pictureType(Buffer.from('GIF89a'))).toBeUndefined();
});
