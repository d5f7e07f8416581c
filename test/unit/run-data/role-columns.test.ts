// What roles have earned, from episodes through the index and the table of the Episodes page.
import { expect, test } from 'vitest';
import { addToIndex, indexLine, isIndexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import { returnName, runningReturns } from '../../../extension/run-data/running-returns';
import type { Episode } from '../../../extension/run-data/episode';
import { episodesOf } from '../../e2e/preview/data';
import { roleGames } from '../../e2e/preview/roles-host';

const lineOf = (episodes: readonly Episode[]) => {
  const line = indexLine('train', 140, 0);
  for (const episode of episodes) addToIndex(line, episode, line.to + 100, 0);
  return line;
};
const [plain] = episodesOf(140, 'train', 1, 1);
const [game] = roleGames();
const earned = [
  { role: 'first', score: 1, reward: 1 },
  { role: 'second', score: -1, reward: -1 },
];

test('rows have the amounts of their roles, also beside episodes without roles and after a transfer', () => {
  const line = lineOf([plain, game, plain]);
  expect(isIndexLine(JSON.parse(JSON.stringify(line)))).toBe(true);
  const table = new EpisodeTable();
  table.addLine(lineOf([plain]));
  table.addLine(JSON.parse(JSON.stringify(line)) as typeof line);
  table.addLine(lineOf([{ ...game, roles: { third: { ...game.roles!.first, score: 3 } } }]));
  const copy = new EpisodeTable();
  copy.addRows(table.slice(0));
  for (const each of [table, copy])
    expect(Array.from({ length: 5 }, (_, row) => each.row(row).roles)).toEqual([
      undefined,
      undefined,
      earned,
      undefined,
      [{ role: 'third', score: 3, reward: 1 }],
    ]);
  const grown = new EpisodeTable();
  grown.addRows(new EpisodeTable().slice(0));
  grown.addRows(table.slice(2));
  expect(grown.row(0).roles).toEqual(earned);
});

test('an index line without roles is as it was, and one with malformed roles is refused', () => {
  expect(lineOf([plain])).not.toHaveProperty('roles');
  const line = lineOf([game]);
  const { names, scores, rewards } = line.roles!;
  for (const roles of [
    null,
    { names, scores },
    { names, scores, rewards: rewards.slice(1) },
    { names: [1, 2], scores, rewards },
    { names, scores: [[1, 2], [1]], rewards },
    { names, scores: [['x'], [1]], rewards },
  ])
    expect(isIndexLine({ ...line, roles })).toBe(false);
});

test('the return of a turn is that of its role', () => {
  const turns = [
    { role: 'a', reward: 1 },
    { role: 'b', reward: -2 },
    { role: 'a', reward: 3 },
  ];
  expect(runningReturns(turns)).toEqual([1, -2, 4]);
  expect(runningReturns(turns.map(({ reward }) => ({ reward })))).toEqual([1, -1, 2]);
  expect([returnName({ role: 'a' }), returnName({})]).toEqual(['return of a', 'return']);
});
