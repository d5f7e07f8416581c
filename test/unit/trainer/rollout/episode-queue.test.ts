// Which episodes begin at once, and which begin because others have ended.
import { expect, test } from 'vitest';
import type { EpisodeEntry } from '../../../../extension/trainer/rollout/environment-state-manager';
import { EpisodeQueue } from '../../../../extension/trainer/rollout/episode-queue';
import { partial } from '../../../support/partial';

const entry = (tag: string, id: string, at_once?: number): EpisodeEntry =>
  partial<EpisodeEntry>({
    tag,
    id,
    environment: partial<EpisodeEntry['environment']>({ ...(at_once && { at_once }) }),
  });
const ids = (entries: readonly EpisodeEntry[]) => entries.map(({ id }) => id);

test('without a limit, all episodes begin at once', () => {
  const all = ['a', 'b', 'c'].map(id => entry('Plain', id));
  const queue = new EpisodeQueue(all);
  expect(ids(queue.first)).toEqual(['a', 'b', 'c']);
  expect(queue.after(all)).toEqual([]);
});

test('with a limit, each ended episode lets one more of its tag begin, once', () => {
  const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map(id => entry('Program', id, 2));
  const free = entry('Plain', 'x');
  const queue = new EpisodeQueue([a, b, c, free, d, e]);
  expect(ids(queue.first)).toEqual(['a', 'b', 'x']);
  expect(ids(queue.after([free]))).toEqual([]);
  expect(ids(queue.after([b]))).toEqual(['c']);
  expect(ids(queue.after([b]))).toEqual([]);
  expect(ids(queue.after([a, c]))).toEqual(['d', 'e']);
  expect(ids(queue.after([d, e]))).toEqual([]);
});
