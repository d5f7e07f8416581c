// @vitest-environment happy-dom
// Heat maps on the Episodes page: maps of a real run of ragen-tiny-vision over its pictures, with one scale for all of them,
// the true states beside them, progress, failures and keys.
import { afterEach, expect, it, vi } from 'vitest';
import { episodeHeat, episodeHeatEnd, episodeHeatPhase } from '../../../../extension/protocol/episodes-page';
import type { HeatMaps } from '../../../../extension/protocol/heat-maps';
import type { Episode } from '../../../../extension/run-data/episode';
import type { HeatPicture } from '../../../../webview/components/heat-picture';
import { startEpisodes } from '../../../../webview/episodes/page';
import { shownHeat } from '../../../../webview/episodes/heat/heat-state';
import { formatNumber } from '../../../../webview/shared/format';
import { storedFiles } from '../../../e2e/fixtures/stored-run.mjs';
import { visualHost } from '../../../e2e/preview/visual-host';
import { freshPage, pageHost, press, settle, stubVisibility, type PageHost } from '../page-host';

const files = storedFiles('visual-run');
const episodes = JSON.parse(files['episodes.json']) as Episode[];
const heats = JSON.parse(files['heats.json']) as Record<string, HeatMaps>;
const first = episodes[0];
const mapsOf = (part: string, { id }: Episode): HeatMaps => heats[`${part} ${id}`];
const largest = (all: readonly HeatMaps[]): number =>
  Math.max(...all.flatMap(({ turns }) => turns.flatMap(({ pictures }) => pictures.flatMap(({ values }) => values))));

stubVisibility(); // one for all tests, because all pictures share an observer
afterEach(() => vi.restoreAllMocks());

async function open(change: (host: PageHost) => void = () => undefined) {
  const root = freshPage();
  const host = pageHost(visualHost(files));
  change(host);
  startEpisodes(host, root);
  await settle();
  press('h');
  await settle();
  const pictures = () => [...root.querySelectorAll<HeatPicture>('heat-picture')];
  const bar = () => root.querySelector('.heat-bar')?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
  const asked = () => host.params.filter(({ method }) => method === episodeHeat.method).map(({ params }) => params);
  return { root, host, pictures, bar, asked };
}

it('are over the pictures of all turns, with the scale of the episode and the true states beside them', async () => {
  const { root, pictures, bar, asked } = await open();
  const { step, mode, id } = first;
  expect(asked()).toEqual([{ step, mode, id, part: 'response' }]);
  const maps = mapsOf('response', first);
  expect(pictures().map(({ map }) => map)).toEqual(maps.turns.flatMap(({ pictures }) => pictures));
  const most = largest([maps]);
  expect(pictures().every(picture => picture.most === most)).toBe(true);
  expect(bar()).toContain(`0${formatNumber(most)} nats`);
  expect(bar()).toContain(`weights of ${maps.checkpoint}`);
  expect([...root.querySelectorAll('.true-state pre')].map(({ textContent }) => textContent)).toEqual(
    first.turns.map(({ true_state }) => true_state),
  );
  press('h');
  await settle();
  expect([pictures(), bar()]).toEqual([[], '']);
  press('h');
  await settle();
  expect(pictures().length).toBeGreaterThan(0);
  expect(asked()).toHaveLength(1);
});

it('name each cell and its value by keys and for screen readers', async () => {
  const { root } = await open();
  const [{ map }] = root.querySelectorAll<HeatPicture>('heat-picture');
  const frame = root.querySelector<HTMLElement>('.heat-frame')!;
  const readout = () => root.querySelector('.heat-readout')!.textContent;
  const at = map.values.indexOf(Math.max(...map.values));
  const named = (cell: number): string =>
    `row ${Math.floor(cell / 4) + 1}, column ${(cell % 4) + 1}: ${formatNumber(map.values[cell])} nats`;
  expect(frame.getAttribute('aria-label')).toBe(
    `Picture 1 of 1 of the state, heat map of 4 rows and 4 columns, strongest at ${named(at)}`,
  );
  expect(readout()).toBe(`strongest at ${named(at)}`);
  for (let i = 0; i < 4; i++) press('ArrowUp', frame);
  for (let i = 0; i < 4; i++) press('ArrowLeft', frame);
  await settle();
  expect(readout()).toBe(named(0));
  press('ArrowRight', frame);
  press('ArrowDown', frame);
  await settle();
  expect(readout()).toBe(named(5));
  expect(root.querySelector<HTMLElement>('.heat-cursor')!.style.left).toBe('25%');
  press('Escape', frame);
  await settle();
  expect(readout()).toBe(`strongest at ${named(at)}`);
  expect(root.querySelector('.episodes')!.className).toBe('episodes'); // Escape did not leave the reader
});

it('are in film strips, with one scale for all members, computed one after the other', async () => {
  const { root, host, pictures, asked } = await open();
  press('f');
  for (let i = 0; i < 3 * episodes.length; i++) await settle();
  expect(asked()).toHaveLength(episodes.length);
  const all = episodes.map(episode => mapsOf('response', episode));
  expect(pictures()).toHaveLength(all.flatMap(({ turns }) => turns).length);
  expect(pictures().every(({ bare, most }) => bare && most === largest(all))).toBe(true);
  expect(root.querySelector('.film-frame')!.getAttribute('aria-label')).toContain('heat map strongest at row');
  expect(host.sent.some(({ method }) => method === episodeHeatEnd.method)).toBe(false);
});

it('are in the group side by side: a map of its own for each answer to a shared state, with one scale', async () => {
  const { root, pictures, bar } = await open();
  press('h');
  press('g');
  await settle();
  const shared = () => [...root.querySelectorAll('.grid-shared')].map(row => row.getAttribute('data-turn'));
  expect(shared()).toContain('1'); // without maps, the state is shown once
  press('h');
  for (let i = 0; i < 3 * episodes.length; i++) await settle();
  const all = episodes.map(episode => mapsOf('response', episode));
  const rows = Math.max(...all.map(({ turns }) => turns.length));
  const byRow = Array.from({ length: rows }, (_, at) => all.flatMap(({ turns }) => turns[at]?.pictures ?? []));
  expect(pictures().map(({ map }) => map)).toEqual(byRow.flat());
  expect(pictures().every(({ bare, most }) => !bare && most === largest(all))).toBe(true);
  expect(shared()).toEqual([]);
  expect(bar()).toContain(`0${formatNumber(largest(all))} nats`);
  press('h');
  await settle();
  expect([pictures(), bar()]).toEqual([[], '']);
  expect(shared()).toContain('1');
  press('t'); // follows a prompt over training, without maps
  await settle();
  expect(root.querySelector('.episode-tools')!.textContent).not.toContain('Heat map');
});

it('show their progress, and are cancelled with the key that shows them', async () => {
  const { host, bar } = await open(host => host.hold(episodeHeat.method));
  expect(bar()).toContain('starting …');
  host.send(episodeHeatPhase, { phase: 'loading step-000007' });
  await settle();
  expect(bar()).toContain('loading step-000007 …');
  press('h');
  await settle();
  expect(host.sent.map(({ method }) => method)).toContain(episodeHeatEnd.method);
});

it('say why they could not be computed, and are computed again', async () => {
  const { root, host, bar, pictures, asked } = await open(host =>
    host.refuse(episodeHeat.method, 'inspection: the model needs 3 GiB of memory'),
  );
  expect(bar()).toContain('inspection: the model needs 3 GiB of memory');
  await settle();
  expect(asked()).toHaveLength(1);
  host.accept(episodeHeat.method);
  root.querySelector<HTMLElement>('.heat-bar .link')!.click();
  await settle();
  expect(pictures().length).toBe(first.turns.length);
});

it('say so if a turn has no tokens to explain', async () => {
  const bare = structuredClone(heats);
  bare[`response ${first.id}`].turns[0] = { turn: 1, tokens: 0, logprob: 0, pictures: [], earlier: 0 };
  const root = freshPage();
  startEpisodes(pageHost(visualHost({ ...files, 'heats.json': JSON.stringify(bare) })), root);
  await settle();
  press('h');
  await settle();
  expect(root.querySelector('.turn .heat-readout')!.textContent).toBe('no tokens to explain');
  expect(root.querySelectorAll('.turn-seen .state-picture')).toHaveLength(1);
});

it('are neither requested nor offered without pictures', async () => {
  const text = episodes.map(episode => ({
    ...episode,
    turns: episode.turns.map(({ pictures: _, ...turn }) => turn),
  }));
  const root = freshPage();
  const host = pageHost(visualHost({ ...files, 'episodes.json': JSON.stringify(text) }));
  startEpisodes(host, root);
  await settle();
  press('h');
  await settle();
  expect(host.asked).not.toContain(episodeHeat.method);
  expect(root.querySelector('.episode-tools')!.textContent).not.toContain('Heat map');
  expect(shownHeat({ settings: { heat: false } as never, shown: null, heats: new Map() })).toBeNull();
});
