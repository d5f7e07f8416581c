// Pictures of the Live page: each is loaded once, the episode is sent again when they are there, and names never reach
// the page.
import { expect, test, vi } from 'vitest';
import type { WatchedEpisode } from '../../../../extension/protocol/trainer-link';
import { WatchedPictures } from '../../../../extension/vscode/pages/watched-pictures';
import { partial } from '../../../support/partial';

const turn = (pictures?: (string | null)[]): WatchedEpisode['turns'][number] =>
  partial<WatchedEpisode['turns'][number]>({ turn: 1, state: '<image>', ...(pictures && { pictures }) });
const watched = (turns: WatchedEpisode['turns'], pictures?: (string | null)[]): WatchedEpisode =>
  partial<WatchedEpisode>({ id: 'x', turns, state: '<image>', ...(pictures && { pictures }) });

test('pictures are null until they are loaded; then the episode is shown again', async () => {
  const load = vi.fn(async (name: string) => (name === 'gone' ? null : `data:${name}`));
  const again = vi.fn();
  const pictures = new WatchedPictures(load, again);
  const episode = watched([turn(['a', 'gone']), turn()], ['a', null]);
  const before = pictures.shownIn(episode);
  expect([before.turns[0].pictures, before.pictures]).toEqual([
    [null, null],
    [null, null],
  ]);
  pictures.shownIn(episode); // while they load
  await vi.waitFor(() => expect(again).toHaveBeenCalledTimes(1));
  const after = pictures.shownIn(episode);
  expect([after.turns[0].pictures, after.turns[1], after.pictures]).toEqual([
    ['data:a', null],
    episode.turns[1],
    ['data:a', null],
  ]);
  expect(load.mock.calls).toEqual([['a'], ['gone']]);
  expect(episode.turns[0].pictures).toEqual(['a', 'gone']);
});

test('an unreadable picture is null, and an episode without pictures is returned unchanged', async () => {
  const again = vi.fn();
  const pictures = new WatchedPictures(() => Promise.reject(new Error('disk')), again);
  const plain = watched([turn()]);
  expect(pictures.shownIn(plain)).toBe(plain);
  pictures.shownIn(watched([], ['a']));
  await vi.waitFor(() => expect(again).toHaveBeenCalledTimes(1));
  expect(pictures.shownIn(watched([], ['a'])).pictures).toEqual([null]);
});

test('of many pictures the newest are kept', async () => {
  const load = vi.fn(async (name: string) => `data:${name}`);
  const pictures = new WatchedPictures(load, () => undefined);
  const names = Array.from({ length: 300 }, (_, i) => String(i));
  pictures.shownIn(watched([], names));
  await vi.waitFor(() => expect(load).toHaveBeenCalledTimes(256));
  await vi.waitFor(() =>
    expect(pictures.shownIn(watched([], names)).pictures).toEqual(names.map((n, i) => (i < 44 ? null : `data:${n}`))),
  );
  expect(load).toHaveBeenCalledTimes(256);
});
