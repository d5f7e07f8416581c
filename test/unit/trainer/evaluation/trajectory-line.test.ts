// RAGEN's trajectory lines, in the original format and with two errors of RAGEN corrected.
import { expect, test } from 'vitest';
import type { Episode, EpisodeTurn } from '../../../../extension/run-data/episode';
import { trajectoryLine } from '../../../../extension/trainer/evaluation/trajectory-line';

const turn = (number: number, state: string, raw: string, reward: number): EpisodeTurn => ({
  turn: number,
  state,
  actions_left: 10,
  raw,
  thought: null,
  answer: null,
  parsed: [],
  executed: [],
  reward,
  penalty: 0,
  info: {},
  finish: 'stop',
  span: [0, 0],
});

/** A Sokoban episode: a step, an answer without an action, and the solving push. */
const episode: Episode = {
  id: 'val-000000-g001-m01',
  step: 0,
  mode: 'val',
  group_id: 1,
  member: 1,
  env_id: 3,
  tag: 'CoordSokoban',
  environment: { name: 'sokoban', version: 'v' },
  seed: 124,
  terminated: true,
  truncated: false,
  success: true,
  reward: 10.8,
  penalty: -0.1,
  score: 10.700000000000001,
  advantage: null,
  kept: null,
  turns: [turn(1, 'start', 'one', -0.1), turn(2, 'near', 'two', 0), turn(3, 'near', 'three', 10.9)],
  final_state: 'solved',
  metrics: {},
  messages: [],
  tokens: { ids: [], mask: [], logprobs: [] },
};
const facts = { metrics: { 'CoordSokoban/success': 1, 'CoordSokoban/pass@2': 1 }, entropy: 0.25, n_tokens: 12 };

test('a state has the reward of the turn before it, and success is the episode’s success', () => {
  expect(trajectoryLine(5, episode, facts, 'workbench')).toEqual({
    custom_id: 'traj_5',
    messages: [
      { role: 'user', content: 'start' },
      { role: 'assistant', content: 'one' },
      { role: 'user', content: 'near (reward: -0.1)' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'near' },
      { role: 'assistant', content: 'three' },
      { role: 'user', content: 'solved (reward: 10.9)' },
    ],
    metadata: {
      env_id: 3,
      group_id: 1,
      tag: 'CoordSokoban',
      seed: 124,
      num_turns: 3,
      total_reward: 10.700000000000001,
      success: true,
      'CoordSokoban/success': 1,
      'CoordSokoban/pass@2': 1,
      entropy: 0.25,
      n_tokens: 12,
    },
  });
});

test("in RAGEN's format, a state has the reward of the turn after it, and success is always false", () => {
  const { messages, metadata } = trajectoryLine(0, episode, facts, 'ragen');
  expect(messages.map(({ content }) => content)).toEqual([
    'start',
    'one',
    'near',
    'two',
    'near (reward: 10.9)',
    'three',
    'solved',
  ]);
  expect(metadata).toEqual({
    env_id: 3,
    group_id: 1,
    num_turns: 3,
    total_reward: 10.700000000000001,
    success: false,
    'CoordSokoban/success': 1,
    'CoordSokoban/pass@2': 1,
  });
});

test('an episode with a failed environment contains the error; an episode without turns has only its first state', () => {
  const failed = { ...episode, turns: [], error: 'environment CoordSokoban threw', success: false };
  const { messages, metadata } = trajectoryLine(0, failed, facts, 'workbench');
  expect(messages).toEqual([{ role: 'user', content: 'solved' }]);
  expect(metadata.error).toBe('environment CoordSokoban threw');
});
