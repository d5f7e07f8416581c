// @vitest-environment happy-dom
// Episodes with roles on the Episodes page: scores and returns by role in the list, the reader, the grid of a group and
// the player, never a sum over roles.
import { expect, it } from 'vitest';
import { startEpisodes } from '../../../../webview/episodes/page';
import { sortRows } from '../../../../webview/episodes/list/listing';
import { playbackFrames } from '../../../../webview/episodes/player/playback';
import { addToIndex, indexLine } from '../../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../../extension/run-data/episode-table';
import { roleGames, rolesHost } from '../../../e2e/preview/roles-host';
import { freshPage, pageHost, settle } from '../page-host';

async function open() {
  const root = freshPage();
  startEpisodes(pageHost(rolesHost()), root);
  await settle();
  const click = async (element: Element | undefined) => {
    element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    await settle();
  };
  return { root, click, rows: [...root.querySelectorAll<HTMLElement>('.episode-row')] };
}

it('the list shows the amounts of the roles, and says whose they are', async () => {
  const { rows } = await open();
  const amounts = [...rows[0].querySelectorAll('.number')].map(each => each.textContent);
  expect(amounts.slice(0, 2)).toEqual(['+1 / −1', '+1 / −1']);
  expect(rows[0].querySelector('.number')!.getAttribute('title')).toBe('first +1, second −1');
  expect(rows[0].getAttribute('aria-label')).toContain('return first +1, second −1, score first +1, second −1');
});

it('the reader shows score and advantage of each role, and returns by role in the turns', async () => {
  const { root, click, rows } = await open();
  await click(rows[0]);
  const facts = [...root.querySelectorAll('.facts > div')].map(each => each.textContent);
  expect(facts).toContain('score of first+1 ✓');
  expect(facts).toContain('score of second−1 ✗');
  expect(facts.filter(fact => /^(score|return|advantage)(?! of)/.test(fact))).toEqual([]);
  const returns = [...root.querySelectorAll('.reward')].map(each => /return.*/.exec(each.textContent)?.[0].trim());
  expect(returns).toEqual(['return of first 0', 'return of second −1', 'return of first +1']);
});

it('episodes are sorted by the amounts of their first role', () => {
  const table = new EpisodeTable();
  const line = indexLine('train', 1, 0);
  const [game] = roleGames();
  for (const [i, reward] of [0, -1, 1].entries()) {
    const roles = { ...game.roles, first: { ...game.roles!.first, reward, score: reward } };
    addToIndex(line, { ...game, member: i, roles }, line.to + 1, 0);
  }
  table.addLine(line);
  const rows = Uint32Array.from([0, 1, 2]);
  expect([...sortRows(rows, table, { by: 'score', down: true })]).toEqual([2, 0, 1]);
  expect([...sortRows(rows, table, { by: 'reward', down: false })]).toEqual([1, 0, 2]);
});

it('a frame of the player names its role, and has the return of this role', () => {
  const frames = playbackFrames(roleGames()[0]);
  expect(frames.map(({ title, running }) => [title, running])).toEqual([
    ['Turn 1 of 3, first', 0],
    ['Turn 2 of 3, second', -1],
    ['Turn 3 of 3, first', 1],
    ['End', 1],
  ]);
});
