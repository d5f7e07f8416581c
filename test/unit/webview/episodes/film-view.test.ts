// @vitest-environment happy-dom
// Pictures of episodes on the Episodes page: film strips, pictures that leave the page when they are off screen, and
// exported GIFs. The size of a box comes from the file's header.
import { nothing, render } from 'lit';
import { afterEach, expect, it, vi } from 'vitest';
import { boardPicture } from '../../../../envs/api/picture';
import { addToIndex, indexLine } from '../../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../../extension/run-data/episode-table';
import { episodeOpen, episodesReady } from '../../../../extension/protocol/episodes-page';
import { sizeOf, type LazyPicture } from '../../../../webview/components/lazy-picture';
import { startEpisodes } from '../../../../webview/episodes/page';
import { decodedPictures } from '../../../../webview/episodes/player/decoded-pictures';
import { framePainter } from '../../../../webview/episodes/player/frame-picture';
import { filmFrames } from '../../../../webview/episodes/reader/film-view';
import { readTheme } from '../../../../webview/shared/theme';
import { episodesOf, runAt } from '../../../e2e/preview/data';
import { freshPage, pageHost, press, settle, stubVisibility } from '../page-host';

const urlOf = (red: number): string =>
  `data:image/png;base64,${Buffer.from(
    boardPicture(
      [
        [red, 0, 0],
        [0, 0, 0],
      ],
      2,
      4,
    ),
  ).toString('base64')}`;
const [shared, own] = [urlOf(1), urlOf(2)];

const pictured = episodesOf(140, 'train', 1, 3).map((episode, member) => ({
  ...episode,
  turns: Array.from({ length: 3 }, (_, i) => ({
    ...episode.turns[0],
    turn: i + 1,
    state: '<image>',
    pictures: member === 1 && i === 1 ? [shared, null] : [shared],
  })),
  final_state: '<image>',
  ...(member < 2 && { final_pictures: [own] }),
}));
const [first, second, bare] = pictured;
for (const turn of bare.turns) Object.assign(turn, { pictures: undefined });

const visibility = stubVisibility(); // one for all tests, because all pictures share an observer
afterEach(() => vi.restoreAllMocks());

async function open() {
  const table = new EpisodeTable();
  const line = indexLine('train', 140, 0);
  for (const episode of pictured) addToIndex(line, episode, line.to + 1, 0);
  table.addLine(line);
  const root = freshPage();
  const answer = (method: string, params: unknown): unknown => {
    if (method === episodesReady.method) return { run: runAt(140, 200), epoch: 0, read: 1, rows: table.slice(0) };
    if (method === episodeOpen.method) return pictured.find(({ id }) => id === (params as { id: string }).id);
    throw new Error(method);
  };
  startEpisodes(pageHost({ answer }), root);
  await settle();
  press('f');
  await settle();
  const frames = () => [...root.querySelectorAll<HTMLElement>('.film-frame')];
  return { root, frames };
}

it('frames are the pictures of all turns and of the final state, with their turns', () => {
  expect(filmFrames(second).map(({ turn, picture, label }) => [turn, picture, label])).toEqual([
    [1, shared, 'turn 1'],
    [2, shared, 'turn 2, 1 of 2'],
    [2, null, 'turn 2, 2 of 2'],
    [3, shared, 'turn 3'],
    [null, own, 'end'],
  ]);
  expect(filmFrames(bare)).toEqual([]);
});

it('a strip for each member with pictures; arrow keys move the focus, and a frame opens its turn', async () => {
  const { root, frames } = await open();
  expect(root.querySelectorAll('.film-strip')).toHaveLength(2);
  expect(root.querySelector('.film .muted')?.textContent).toBe('1 of 3 episodes have no pictures');
  expect(frames().map(frame => frame.textContent.trim().replace(/\s+/g, ' '))).toEqual([
    ...['turn 1', 'turn 2', 'turn 3', 'end'],
    ...['turn 1', 'turn 2, 1 of 2', 'missingturn 2, 2 of 2', 'turn 3', 'end'],
  ]);
  expect(frames().filter(frame => frame.tabIndex === 0)).toEqual([frames()[0], frames()[4]]);
  const at = (): number => frames().findIndex(frame => frame === document.activeElement);
  const move = (key: string): number => {
    document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    return at();
  };
  frames()[0].focus();
  expect(['ArrowRight', 'ArrowDown', 'End', 'ArrowUp', 'Home', 'ArrowLeft', 'x'].map(move)).toEqual([
    ...[1, 5, 8, 3, 0, 0, 0],
  ]);
  frames()[7].click();
  await settle();
  expect(root.querySelector('article.episode')!.getAttribute('aria-label')).toBe(`Episode ${second.id}`);
});

it('opens the turn of the episode that is already open', async () => {
  const { root, frames } = await open();
  const scrolled = vi.spyOn(Element.prototype, 'scrollIntoView').mockImplementation(() => undefined);
  frames()[1].click();
  await settle();
  expect(root.querySelector('article.episode')!.getAttribute('aria-label')).toBe(`Episode ${first.id}`);
  expect(scrolled.mock.contexts.map(turn => (turn as HTMLElement).dataset.turn)).toContain('2');
});

it('a picture has an img only while it is near the screen, in a box with the shape of the file', async () => {
  const root = document.createElement('div');
  document.body.append(root);
  const picture = document.createElement('lazy-picture') as LazyPicture;
  Object.assign(picture, { src: shared, label: 'a board' });
  root.append(picture);
  await picture.updateComplete;
  const img = (): HTMLImageElement | null => picture.querySelector('img');
  expect([img()!.getAttribute('src'), img()!.alt, img()!.getAttribute('decoding')]).toEqual([
    shared,
    'a board',
    'async',
  ]);
  expect(picture.style.getPropertyValue('--ratio')).toBe('8 / 4');
  visibility.show(picture, false);
  await picture.updateComplete;
  expect(img()).toBeNull();
  expect(picture.style.getPropertyValue('--ratio')).toBe('8 / 4');
});

it('reads the size of nothing but PNG and JPEG data URLs', () => {
  expect(sizeOf(shared)).toMatchObject({ width: 8, height: 4 });
  for (const url of [
    '',
    'https://example.org/a.png',
    'data:image/png;base64,AAAA',
    'data:image/svg+xml;base64,AAAA',
    `x${shared}`,
  ])
    expect(sizeOf(url), url).toBeUndefined();
});

it('a frame of an exported GIF shows the pictures; a damaged one leaves the text of the state', async () => {
  class FakeImage {
    src = '';
    naturalWidth = 8;
    naturalHeight = 4;
    decode = (): Promise<void> => (this.src === shared ? Promise.resolve() : Promise.reject(new Error('damaged')));
  }
  vi.stubGlobal('Image', FakeImage);
  const decoded = await decodedPictures(second);
  expect([...decoded.keys()]).toEqual([shared]);
  const drawn: number[][] = [];
  const texts: string[] = [];
  const context = new Proxy({} as CanvasRenderingContext2D, {
    get: (_, name) =>
      name === 'drawImage'
        ? (_source: unknown, ...box: number[]) => drawn.push(box)
        : name === 'measureText'
          ? (text: string) => ({ width: text.length * 8 })
          : name === 'fillText'
            ? (text: string) => texts.push(text)
            : () => undefined,
    set: () => true,
  });
  const paint = framePainter(second, readTheme(), decoded);
  paint(context, 0);
  expect(drawn).toEqual([[24, 24 + (304 - 152) / 2, 304, 152]]); // as large as fits, centred
  expect(texts).not.toContain('<image>');
  paint(context, 3);
  expect(drawn).toHaveLength(1);
  expect(texts).toContain('<image>');
});

it('a film without pictures says so', async () => {
  const episodes = episodesOf(140, 'train', 1, 1);
  const root = document.createElement('div');
  const { filmView } = await import('../../../../webview/episodes/reader/film-view');
  const options = { theme: readTheme(), raw: false, tokens: false };
  render(filmView({ row: { ...episodes[0] }, members: [] } as never, episodes, options, nothing, {} as never), root);
  expect(root.textContent).toContain('The environment of these episodes returned no pictures.');
});
