import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  environmentFigures,
  methodLines,
  formatReset,
  formatStep,
} from '../../../../extension/vscode/environments/environment-figures';
import type { EpisodeHead } from '../../../../extension/vscode/run-files/episodes/episode-heads';
import { firstDifference, replayCase } from '../../../../extension/vscode/traces/commands/replay';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { lakeEpisode } from '../traces/lake-episode';

const head = (change: Partial<EpisodeHead>): EpisodeHead => ({
  ...lakeEpisode(),
  first: '',
  from: 0,
  length: 1,
  ...change,
});
const failed = (step: number, tag: string, episodes?: number): RunEvent => ({
  time: '',
  step,
  kind: 'environment_error',
  message: 'it broke',
  data: { tag, seed: 1, kind: 'error', episodes },
});

test('statistics are of one version of a run’s code, with the errors of the same steps', () => {
  const { environment } = lakeEpisode();
  const heads = [
    head({ step: 17, reward: 0, success: false }),
    head({ step: 18, reward: 1, success: true }),
    head({ step: 18, environment: { ...environment, version: 'before' } }),
    head({ step: 18, tag: 'Other' }),
  ];
  const events = [failed(16, 'Lake'), failed(17, 'Lake', 3), failed(18, 'Lake'), failed(18, 'Other')];
  const of = { version: environment.version, tags: new Set(['Lake']) };
  const figures = environmentFigures('lake', of, heads, events)!;
  expect(formatReset(figures)).toBe('lake: version eb412af6 · 2 episodes in steps 17–18');
  expect(formatStep(figures)).toBe('lake: return +0.500 · success 50.0 % · 4 errors');
  expect(environmentFigures('lake', { ...of, version: 'unplayed' }, heads, events)).toBeUndefined();
});

test('methods are found at their definitions', () => {
  const source = readFileSync('media/templates/environment/environment.ts', 'utf8');
  const lines = source.split('\n');
  expect(methodLines(source).map(({ name, line }) => [name, lines[line].trim().split('(')[0]])).toEqual([
    ['reset', 'reset'],
    ['step', 'step'],
  ]);
  const others = 'a.step(1);\nstep(1);\nconst step = (a: number) => {\n  reset: async () => 1,\nreturn reset(x)';
  expect(methodLines(others)).toEqual([
    { name: 'step', line: 2 },
    { name: 'reset', line: 3 },
  ]);
});

test('a replay matches when states, rewards and the end match; otherwise the differences are listed', () => {
  const episode = lakeEpisode();
  const config = { custom_envs: { Lake: { env_type: 'frozen_lake', env_config: { size: 2 } } } };
  expect(replayCase(episode, { config })).toEqual({
    env: 'frozen_lake',
    config: { size: 2 },
    seed: 10272,
    member: 5,
    mode: 'train',
    actions: ['Up', 'Right'],
  });
  expect(replayCase({ ...episode, tag: 'Gone' }, { config })).toBeUndefined();

  const step = { terminated: false, truncated: false, info: {} };
  const [first, second] = [
    { ...step, observation: 'PG\n__', reward: 0 },
    { ...step, observation: '_√\n__', reward: 1, terminated: true },
  ];
  const played = (...steps: (typeof first)[]) => firstDifference(episode, { observation: '_G\nP_', steps });
  expect(played(first, second)).toBeUndefined();
  expect(played(first, { ...second, reward: 0.5 })).toEqual({ turn: 2, what: 'reward', recorded: '+1', now: '+0.500' });
  expect(played({ ...first, observation: '?' }, second)).toMatchObject({ turn: 2, what: 'state', now: '?' });
  expect(played({ ...first, terminated: true })).toMatchObject({ turn: 1, what: 'end' });
  expect(played(first)).toMatchObject({ turn: 2, what: 'end', now: 'ended after 1 actions' });
  expect(played(first, { ...second, observation: 'x' })).toMatchObject({ turn: 2, what: 'state', now: 'x' });
  expect(firstDifference(episode, { observation: 'x', steps: [] })).toMatchObject({ turn: 1, what: 'state' });
});
