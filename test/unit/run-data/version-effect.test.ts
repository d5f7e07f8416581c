import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunEvent } from '../../../extension/run-data/run-events';
import {
  comparedRange,
  formatEffect,
  lastRuns,
  ranVersions,
  spansOf,
  versionEffect,
  welchInterval,
  type ComparedEpisode,
} from '../../../extension/run-data/version-effect';

interface Case {
  x: number[];
  y: number[];
  low: number;
  high: number;
}
const cases = JSON.parse(readFileSync(join(__dirname, '../../golden/version-effect.json'), 'utf8')) as Case[];

test.each(cases)(
  'the interval equals SciPy’s ($x.length and $y.length values, $low to $high)',
  ({ x, y, low, high }) => {
    const [from, to] = welchInterval(x, y)!;
    const width = high - low;
    expect(Math.abs(from - low)).toBeLessThan(1e-4 * width);
    expect(Math.abs(to - high)).toBeLessThan(1e-4 * width);
  },
);

test('constant values have an interval of width 0; a single value has none', () => {
  expect(welchInterval([1, 1], [3, 3, 3])).toEqual([2, 2]);
  expect(welchInterval([1], [3, 3])).toBeNull();
});

const episode = (step: number, group_id: number, version: string, reward: number, more = {}): ComparedEpisode => {
  return {
    step,
    mode: 'train',
    tag: 'T',
    group_id,
    reward,
    success: reward > 1,
    environment: { name: 't', version },
    ...more,
  };
};

test('only the steps around the swap count, by groups, without other tags, validation or failed episodes', () => {
  const episodes = [
    episode(1, 0, 'a', 99), // too early
    ...[episode(2, 0, 'a', 0), episode(2, 0, 'a', 2), episode(2, 1, 'a', 0)],
    ...[episode(3, 0, 'a', 2), episode(3, 0, 'b', 4), episode(3, 1, 'b', 6)],
    ...[episode(4, 0, 'b', 5), episode(4, 1, 'b', 5)],
    episode(5, 0, 'b', 99), // too late
    ...[episode(3, 2, 'b', 99, { tag: 'U' }), episode(3, 2, 'b', 99, { mode: 'val' })],
    ...[episode(3, 2, 'b', 99, { error: 'threw' }), episode(9, 0, 'a', 99)], // the old version again, later
  ];
  const { reward, success } = versionEffect(episodes, { tag: 'T', from: 'a', to: 'b', steps: 2 })!;
  expect(reward.before).toEqual({ episodes: 4, groups: 3, mean: 1 }); // group means 1, 0, 2
  expect(reward.after).toEqual({ episodes: 4, groups: 4, mean: 5 });
  expect(reward.difference).toBe(4);
  const [low, high] = reward.interval!;
  expect(low).toBeLessThan(4);
  expect(high).toBeGreaterThan(4);
  expect(success).toMatchObject({ before: { mean: 0.5 }, after: { mean: 1 }, difference: 0.5 });
});

test('a version without episodes has no effect', () => {
  expect(versionEffect([episode(1, 0, 'a', 1)], { tag: 'T', from: 'a', to: 'b' })).toBeUndefined();
});

test('the text contains means, change and interval', () => {
  const episodes = [0, 1, 2, 3].flatMap(g => [episode(1, g, 'a', g % 2), episode(2, g, 'b', 1 + (g % 2))]);
  expect(formatEffect(versionEffect(episodes, { tag: 'T', from: 'a', to: 'b' })!)).toBe(
    'reward 0.50 → 1.50 (+1.00, 95 % interval 0.00 … 2.00), success 0 % → 50 % (+50, 95 % interval -42 … 142 points) over 4 and 4 groups',
  );
});

test('versions follow the manifest through reloads and resumes', () => {
  const happened = (step: number, kind: RunEvent['kind'], data: object): RunEvent => {
    return { time: '', step, kind, message: '', data: data as Record<string, unknown> };
  };
  const environments = ['T', 'U'].map(tag => ({ tag, name: 't', source: '/t.ts', version: 'a' }));
  const events = [
    happened(4, 'environment_reload', { tag: 'T', from: 'a', to: 'b', files: [], step: 5, ms: 1 }),
    happened(4, 'environment_refused', { tag: 'T' }),
    happened(9, 'environment_version', { tag: 'T', from: 'b', to: 'c' }),
  ];
  const ran = ranVersions({ environments }, events);
  expect(ran).toEqual([
    { tag: 'T', version: 'a', from: 1, to: 5 },
    { tag: 'U', version: 'a', from: 1, to: null },
    { tag: 'T', version: 'b', from: 5, to: 10 },
    { tag: 'T', version: 'c', from: 10, to: null },
  ]);
  const undone = ranVersions({ environments }, [
    ...events.slice(0, 1),
    happened(24, 'environment_reload', { tag: 'T', from: 'b', to: 'a', files: [], step: 25, ms: 1 }),
  ]);
  expect(lastRuns(undone).map(({ tag, version, from }) => [tag, version, from])).toEqual([
    ['U', 'a', 1],
    ['T', 'b', 5],
    ['T', 'a', 25],
  ]);
  expect(spansOf(undone, undone[0])).toEqual([
    { from: 1, to: 5 },
    { from: 25, to: null },
  ]);
  expect(comparedRange(ran[0], ran[2], 2)).toEqual([3, 4, 5, 6, 7]);
  expect(comparedRange(ran[0], ran[3], 1)).toEqual([4, 5, 10, 11]);
});
