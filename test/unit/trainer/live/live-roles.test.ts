// The live view of an episode with roles: who plays each turn, and what each role has earned so far.
import { expect, test } from 'vitest';
import type { WatchedEpisode } from '../../../../extension/protocol/trainer-link';
import { LiveView } from '../../../../extension/trainer/live/live-view';
import type { PlayedSoFar } from '../../../../extension/trainer/rollout/rollout-request';
import { partial } from '../../../support/partial';

type Entry = PlayedSoFar['entry'];
type Turn = Entry['history'][number];

const turnOf = (turn: number, role: string, reward: number): Turn =>
  partial<Turn>({ turn, role, reward, penalty: 0, state: `state ${turn}`, actions_left: 9, raw: 'a', executed: ['a'] });

test('turns name their roles, and returns are those of the roles', () => {
  const entry = partial<Entry>({
    ...{ id: 'train-000001-g000-m00', tag: 'Nim', group_id: 0, member: 0, seed: 1, state: 'now', pictures: [] },
    ...{ history: [turnOf(1, 'first', 0), turnOf(2, 'second', -0.5)], role: 'first', penalty: 0, num_actions: 2 },
    ...{ max_actions_per_traj: 12, success: false, terminated: false, truncated: false },
    environment: partial<Entry['environment']>({ name: 'nim', version: 'v' }),
    roles: { first: { success: false, waiting: 0 }, second: { success: false, waiting: 0 } },
  });
  const context = partial<PlayedSoFar['context']>({ samples: () => [] });
  const view = new LiveView();
  const rows: (string | null)[] = [];
  view.connect({
    engine: { watch: row => void rows.push(row) },
    tokenizer: { decode: () => '' },
    prefix: () => '<answer>',
    ...{ tags: ['Nim'], maxTurn: 12 },
  });
  const shown: (WatchedEpisode | null)[] = [];
  view.watch({}, { episode: episode => void shown.push(episode), tokens: () => undefined }, {});
  view.begun({ mode: 'train', step: 1 }, [{ entry, context }]);
  view.asked(view['all']);
  const { turns, roles } = shown.at(-1)!;
  expect(turns.map(({ turn, role, outcome }) => [turn, role, outcome?.reward])).toEqual([
    [1, 'first', 0],
    [2, 'second', -0.5],
    [3, 'first', undefined],
  ]);
  expect(roles).toMatchObject({ first: { turns: 1, reward: 0 }, second: { turns: 1, reward: -0.5 } });
  expect(rows).toEqual(['train-000001-g000-m00/first']);
  view.ended();
});
