// The history of episodes: the recorded actions that rebuild an episode, and the episodes that are not rebuilt.
import { expect, test } from 'vitest';
import { EpisodeHistory, type EpisodeStart } from '../../../../extension/environments/supervision/episode-history';

const start = (episode: string, seed = 1): EpisodeStart => ({ episode, seed, member: 0, mode: 'train' });
const failure = { kind: 'died', message: 'environment T died: fix it' } as const;
const outcomes = (...actions: (number | string)[]) => actions.map(action => ({ action }));

test('an episode consists of its reset and its executed actions', () => {
  const history = new EpisodeHistory<EpisodeStart, string>();
  history.begun(start('a'), 'note');
  history.acted('a', outcomes(1, 'x'));
  history.acted('a', outcomes(2));
  history.acted('unknown', outcomes(1));
  expect(history.live()).toEqual([{ start: start('a'), actions: [1, 'x', 2], note: 'note', failure: undefined }]);
  history.begun(start('a', 2), 'anew');
  expect(history.get('a')).toMatchObject({ start: { seed: 2 }, actions: [], note: 'anew' });
});

test('a failed episode keeps its failure and is not rebuilt until it is reset or closed', () => {
  const history = new EpisodeHistory<EpisodeStart, null>();
  history.begun(start('a'), null);
  history.begun(start('b'), null, failure);
  history.fail('a', failure);
  history.fail('unknown', failure);
  expect([history.live(), history.size, history.get('a')?.failure]).toEqual([[], 2, failure]);
  history.begun(start('a'), null);
  history.close('b');
  expect([history.live().map(record => record.start.episode), history.size]).toEqual([['a'], 1]);
});

test('released episodes can continue in another history', () => {
  const history = new EpisodeHistory<EpisodeStart, null>();
  for (const episode of ['a', 'b', 'c']) history.begun(start(episode, episode === 'b' ? 2 : 1), null);
  history.acted('a', outcomes(3));
  history.fail('c', failure);
  const released = history.release(({ seed }) => seed === 1);
  expect([history.size, released.map(record => record.start.episode)]).toEqual([1, ['a', 'c']]);
  const other = new EpisodeHistory(released);
  expect([other.get('a')?.actions, other.get('c')?.failure]).toEqual([[3], failure]);
});
