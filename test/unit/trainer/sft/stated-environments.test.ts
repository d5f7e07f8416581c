// True states of demonstrated episodes: every reset and step asks for one, the newest is kept until the episode closes,
// and its positions are listed as a text state lists them.
import { expect, it } from 'vitest';
import type { EnvironmentPool } from '../../../../extension/environments/client/environment-pool';
import type { EpisodeState } from '../../../../extension/protocol/environment-link';
import { positionLines, StatedEnvironments } from '../../../../extension/trainer/sft/stated-environments';

it('asks for true states and keeps the newest of each episode, before others learn of it', async () => {
  const asked: (string | undefined)[] = [];
  const state = (episode: string, row: number): EpisodeState => ({
    episode,
    observation: '<image>',
    version: '1',
    true_state: `{"player": [${row}, 0]}`,
  });
  const pool: EnvironmentPool = {
    reset: async (episodes, onStates) => {
      asked.push(...episodes.map(({ state_form }) => state_form));
      onStates?.([state('a', 1)]);
      return episodes.map(({ episode }) => state(episode, 1));
    },
    step: async episodes => {
      asked.push(...episodes.map(({ state_form }) => state_form));
      return episodes.map(({ episode }) => ({ ...state(episode, 2), outcomes: [] }));
    },
    closeEpisodes: async () => undefined,
  };
  const stated = new StatedEnvironments(pool);
  const reset = (episode: string) => ({ episode, tag: 'Lake', seed: 1, member: 0, mode: 'train' as const });
  const heard: (string | undefined)[] = [];
  await stated.reset([reset('a'), reset('b')], ready =>
    heard.push(...ready.map(({ episode }) => stated.stateOf(episode))),
  );
  expect(heard).toEqual(['Player: (1, 0)\n']);
  await stated.step([{ episode: 'a', actions: [1] }]);
  expect(['a', 'b', 'c'].map(episode => stated.stateOf(episode))).toEqual([
    'Player: (2, 0)\n',
    'Player: (1, 0)\n',
    undefined,
  ]);
  await stated.closeEpisodes(['a']);
  expect(stated.stateOf('a')).toBeUndefined();
  expect(asked).toEqual(['structured', 'structured', 'structured']);
});

it('lists one position or several, and leaves out what it does not know', () => {
  expect(positionLines('{"player": [0, 1], "box": [[2, 3], [4, 5]], "target": [1, 1], "wind": [1, 0]}')).toBe(
    'Player: (0, 1)\nBoxes: (2, 3), (4, 5)\nTargets: (1, 1)\n',
  );
  expect(positionLines('{"player": {"row": 1}, "goal": [1, 2, 3]}')).toBe('');
  for (const other of ['not JSON', '3', 'null', '[[1, 2]]']) expect(positionLines(other)).toBe('');
});
