import { expect, test } from 'vitest';
import {
  duration,
  percent,
  resumeOutcome,
  sharedNames,
  short,
  runPhase,
  formatStart,
  withoutArchived,
} from '../../../../extension/vscode/runs/run-format';
import type { RunStatus } from '../../../../extension/run-data/run-status-file';

const phase = (state: RunStatus['state'], live: boolean) => runPhase({ status: { state } as RunStatus, live });

test('a running run needs a living trainer; an ended one does not', () => {
  expect(phase('starting', true)).toBe('running');
  expect(phase('running', true)).toBe('running');
  expect(phase('stopping', true)).toBe('running');
  expect(phase('running', false)).toBe('interrupted');
  expect(phase('paused', true)).toBe('paused');
  expect(phase('paused', false)).toBe('interrupted');
  for (const ended of ['finished', 'stopped', 'failed'] as const) {
    expect(phase(ended, false)).toBe(ended);
    expect(phase(ended, true)).toBe(ended);
  }
});

test('Resume opens a run that continues or has finished, and resumes any other', () => {
  const outcome = (state: RunStatus['state'], live: boolean) => resumeOutcome({ status: { state } as RunStatus, live });
  for (const active of ['starting', 'running', 'stopping'] as const) {
    expect(outcome(active, true)).toBe('continues');
    expect(outcome(active, false)).toBe('resume');
  }
  for (const ended of ['stopped', 'failed', 'paused'] as const) expect(outcome(ended, false)).toBe('resume');
  expect(outcome('paused', true)).toBe('resume');
  expect(outcome('finished', false)).toBe('finished');
});

test.each([
  [0, '0 %'],
  [0.0123, '1.2 %'],
  [0.0994, '9.9 %'],
  [0.0996, '10 %'],
  [0.612, '61 %'],
  [1, '100 %'],
])('percent of %d is %s', (share, text) => expect(percent(share)).toBe(text));

test.each([
  [0, '0 s'],
  [59.4, '59 s'],
  [59.6, '1 m 00 s'],
  [72, '1 m 12 s'],
  [3599.7, '1 h 00 m'],
  [7500, '2 h 05 m'],
])('%d seconds are %s', (seconds, text) => expect(duration(seconds)).toBe(text));

test.each([
  [0, '0.00'],
  [0.12345, '0.123'],
  [-1.5, '−1.50'],
  [9.996, '10.0'],
  [123.4, '123'],
  [999.6, '1.00 k'],
  [12345, '12.3 k'],
  [999_900, '1.00 M'],
  [2.5e9, '2.50 G'],
])('%d is %s', (value, text) => expect(short(value)).toBe(text));

test('runs of one name are distinguished by start time; archived ones are offered only when there are no others', () => {
  expect(sharedNames([{ name: 'a' }, { name: 'b' }, { name: 'a' }, { name: 'a' }])).toEqual(new Set(['a']));
  const now = new Date(2026, 4, 3, 18, 0);
  const format = (...local: [number, number, number, number, number]) =>
    formatStart(new Date(...local).toISOString(), now, 'en-GB');
  expect(format(2026, 4, 3, 14, 3)).toBe('14:03');
  expect(format(2026, 4, 2, 9, 30)).toBe('2 May, 09:30');
  expect(format(2025, 4, 3, 14, 3)).toBe('3 May 2025, 14:03');
  const [open, archived] = [{ summary: {} }, { summary: { archived: true } }];
  expect(withoutArchived([archived, open])).toEqual([open]);
  expect(withoutArchived([archived])).toEqual([archived]);
});
