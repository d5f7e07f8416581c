// Notifications about runs that pause themselves: once per occurrence, and not again after a reload of the window.
import { expect, test } from 'vitest';
import { briefly, waitsBecause } from '../../../../../extension/vscode/runs/run-format';
import { WaitingRuns, type Memory } from '../../../../../extension/vscode/runs/view/waiting-runs';
import type { RunSummary } from '../../../../../extension/protocol/page-state';
import type { RunStatus } from '../../../../../extension/run-data/run-status-file';

const sentence =
  'environment Bandit (/home/a/w/envs/bandit.ts:12) threw “no” in step(Left): mend it (35 of 128 episodes failed)';
const run = (folder: string, state: RunStatus['state'], updated: string, error?: string, live = true) => ({
  folder,
  summary: { live, status: { state, updated, error } } as RunSummary,
});
const remembered = (): Memory => {
  const kept = new Map<string, unknown>();
  return {
    get: <T>(key: string) => kept.get(key) as T | undefined,
    update: async (key, value) => void kept.set(key, value),
  };
};
const folders = (runs: { folder: string }[]): string[] => runs.map(({ folder }) => folder);

test('a run that paused itself is reported once, one paused by the user never', () => {
  const runs = new WaitingRuns(remembered());
  expect(folders(runs.unreported([run('a', 'running', '1'), run('b', 'paused', '1')]))).toEqual([]);
  expect(folders(runs.unreported([run('a', 'paused', '2', sentence), run('b', 'paused', '1')]))).toEqual(['a']);
  expect(folders(runs.unreported([run('a', 'paused', '3', sentence)]))).toEqual([]); // another part of its status changed
  expect(folders(runs.unreported([run('a', 'running', '4')]))).toEqual([]);
  expect(folders(runs.unreported([run('a', 'paused', '5', sentence)]))).toEqual(['a']);
});

test('a reload of the window repeats no report, in whatever order runs are read; later pauses are reported', () => {
  const memory = remembered();
  const before = [run('a', 'paused', '1', sentence), run('b', 'paused', '2', sentence)];
  expect(folders(new WaitingRuns(memory).unreported(before))).toEqual(['a', 'b']);
  const again = new WaitingRuns(memory);
  expect(again.unreported([before[0]])).toEqual([]);
  expect(again.unreported([before[0], run('b', 'paused', '2', sentence, false)])).toEqual([]);
  expect(again.unreported(before)).toEqual([]);
  const later = new WaitingRuns(memory).unreported([before[0], run('b', 'paused', '7', sentence)]);
  expect(folders(later)).toEqual(['b']);
});

test('only a self-paused run with a living trainer has a reason; it is short in a list row', () => {
  expect(waitsBecause(run('a', 'paused', '1').summary)).toBeUndefined();
  expect(waitsBecause(run('a', 'failed', '1', sentence).summary)).toBeUndefined();
  expect(waitsBecause(run('a', 'paused', '1', sentence, false).summary)).toBeUndefined();
  expect(waitsBecause(run('a', 'paused', '1', sentence).summary)).toBe(sentence);
  expect(briefly(sentence)).toBe('bandit.ts:12 threw “no” in step(Left): mend it (35 of 128 …');
  expect(briefly('C:\\w\\runs\\a: no room')).toBe('a: no room');
  expect(briefly('short')).toBe('short');
  expect(briefly('x'.repeat(100))).toBe(`${'x'.repeat(60)} …`);
});
