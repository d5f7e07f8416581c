import { expect, test } from 'vitest';
import { environmentProblems, failureLocation } from '../../../../extension/vscode/environments/environment-problems';
import type { RunEvent } from '../../../../extension/run-data/run-events';

const event = (kind: RunEvent['kind'], data: Record<string, unknown>, message = kind as string): RunEvent => {
  return { time: '2026-01-01T00:00:00Z', step: 3, kind, message, data };
};
const problem = { file: '/w/lake.ts', line: 4, column: 7, endLine: 4, endColumn: 9, message: 'no', kind: 'type' };
const refused = (tag: string, ...problems: object[]) => event('environment_refused', { tag, version: 'a', problems });
const reload = (tag: string) => event('environment_reload', { tag, from: 'a', to: 'b', files: [], step: 4, ms: 9 });
const error = (tag: string, at: string | undefined, episodes?: number) =>
  event('environment_error', { tag, seed: 1, kind: 'threw', at, ...(episodes && { episodes }) }, 'it threw');

test('refused code is an error at its location, once for all tags of a file', () => {
  const other = { ...problem, line: 9, endLine: undefined, endColumn: undefined };
  expect(environmentProblems([refused('A', problem, other), refused('B', problem)])).toEqual([
    { file: '/w/lake.ts', line: 4, column: 7, endLine: 4, endColumn: 9, message: 'no', severity: 'error' },
    { file: '/w/lake.ts', line: 9, column: 7, message: 'no', severity: 'error' },
  ]);
});

test('a later refusal replaces an earlier one; a valid save of the same tag clears it', () => {
  const later = { ...problem, message: 'still no' };
  expect(environmentProblems([refused('A', problem), refused('A', later)]).map(({ message }) => message)).toEqual([
    'still no',
  ]);
  expect(environmentProblems([refused('A', problem), event('environment_mended', { tag: 'A' })])).toEqual([]);
  expect(environmentProblems([refused('A', problem), reload('A')])).toEqual([]);
  expect(environmentProblems([refused('A', problem), reload('B')])).toHaveLength(1);
});

test('locations that ended episodes are warnings with their count, until the code changes', () => {
  const events = [
    error('A', '/w/lake.ts:12'),
    error('A', '/w/lake.ts:12', 6),
    error('A', '/w/lake.ts:20'),
    error('A', undefined),
  ];
  expect(environmentProblems(events)).toEqual([
    { file: '/w/lake.ts', line: 12, column: 1, message: 'it threw — 7 episodes ended here', severity: 'warning' },
    { file: '/w/lake.ts', line: 20, column: 1, message: 'it threw — 1 episode ended here', severity: 'warning' },
  ]);
  expect(environmentProblems([...events, reload('A')])).toEqual([]);
  expect(environmentProblems([...events, reload('B')])).toHaveLength(2);
});

test('a resume starts with what is on disk; data of another form is skipped', () => {
  expect(environmentProblems([refused('A', problem), error('A', '/w/lake.ts:1'), event('resume', {})])).toEqual([]);
  expect(environmentProblems([event('environment_refused', { tag: 'A', problems: 'none' })])).toEqual([]);
});

test('the location that paused a run is that of the failure named first in its message', () => {
  const events = [
    error('A', '/w/lake.ts:4'),
    error('A', '/w/lake.ts:9'),
    { ...error('A', '/w/b.ts:1'), message: 'other' },
  ];
  expect(failureLocation(events, 'it threw (35 of 128 episodes failed), then resume the run')).toEqual({
    file: '/w/lake.ts',
    line: 9,
  });
  expect(failureLocation(events, 'no room on the disk')).toBeUndefined();
  expect(failureLocation([error('A', '/w/lake.ts')], 'it threw')).toBeUndefined();
});
