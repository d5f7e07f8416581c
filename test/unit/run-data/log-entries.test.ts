// The entries of a run's log: levels, steps, times and texts of its lines.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  eventLine,
  logLevels,
  markedEntries,
  mergeEntries,
  stepEntry,
  trainerEntry,
} from '../../../extension/run-data/log-entries';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const event = (second: number, step: number, kind: string, message: string) =>
  eventLine(JSON.stringify({ time: at(second), step, kind, message })).entry;

describe('a line becomes an entry', () => {
  it('of an event, with the level of its kind', () => {
    const levels = (
      [
        ['state', 'running'],
        ['state', 'failed: no memory'],
        ['alarm', 'a'],
        ['environment_error', 'e'],
        ['memory_plan', 'm'],
      ] as const
    ).map(([kind, message]) => event(0, 1, kind, message).level);
    expect(levels).toEqual(['info', 'error', 'warning', 'error', 'debug']);
    expect(eventLine('{"step":').entry).toMatchObject({ level: 'error', kind: 'unreadable', raw: '{"step":' });
  });

  it('of the trainer’s logger, and of output that is not JSON', () => {
    const line = JSON.stringify({ level: 50, time: at(3), msg: 'the step failed', err: { message: 'no memory' } });
    expect(trainerEntry(line)).toMatchObject({
      level: 'error',
      time: Date.parse(at(3)),
      text: 'the step failed: no memory',
    });
    expect(trainerEntry('reset 4')).toMatchObject({ level: 'info', kind: 'output', time: null, text: 'reset 4' });
    expect(trainerEntry('{"a":1}').text).toBe('{"a":1}');
  });

  it('of a finished step, with its success', () => {
    const line = {
      step: 7,
      time: at(9),
      wall_s: 1,
      'train/Lake/success': 0.5,
      'val-env/Lake/success': 0.25,
      'timing_s/step': 2,
    };
    expect(stepEntry(JSON.stringify(line))).toMatchObject({
      step: 7,
      text: 'finished · success 50.0 % · validation 25.0 % · 2 s',
    });
    expect(stepEntry('nonsense')).toBeNull();
  });
});

it('entries of several files are merged by time, and lines without time or step follow their predecessors', () => {
  const merged = mergeEntries([
    [event(1, 0, 'state', 'running'), event(5, 2, 'alarm', 'a')],
    [trainerEntry(JSON.stringify({ level: 30, time: at(2), msg: 'x' })), trainerEntry('output')],
  ]);
  expect(merged.map(({ text, step }) => [text, step])).toEqual([
    ['running', 0],
    ['x', 0],
    ['output', 0],
    ['a', 2],
  ]);
  const later = mergeEntries([[trainerEntry('more')]], merged.at(-1));
  expect(later[0].step).toBe(2);
});

it('any line becomes an entry of bounded length, and merging keeps all entries and the order of each file', () => {
  const line = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({ level: fc.integer(), time: fc.oneof(fc.integer(), fc.string()), msg: fc.string() })
      .map(each => JSON.stringify(each)),
    fc.constant('x'.repeat(100_000)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), fc.array(line, { maxLength: 20 }), (a, b) => {
      const files = [markedEntries(a.map(eventLine)), b.map(trainerEntry)];
      const merged = mergeEntries(files);
      for (const { raw, text, level } of merged) {
        expect(raw.length + text.length).toBeLessThan(20_000);
        expect(logLevels).toContain(level);
      }
      for (const source of ['event', 'trainer'] as const)
        expect(merged.filter(each => each.source === source).map(({ raw }) => raw)).toEqual(
          files[source === 'event' ? 0 : 1].map(({ raw }) => raw),
        );
    }),
  );
});

test('an event names the step at which charts mark it, and other entries name none', () => {
  const edit = { tag: 'lake', from: 'a', to: 'b', files: [], step: 6, ms: 3 };
  const lines = [
    { time: at(1), step: 4, kind: 'state', message: 'running' },
    { time: at(2), step: 5, kind: 'environment_reload', message: 'edited', data: edit },
    'not an event',
    { time: at(3), step: 7, kind: 'alarm', message: 'high', data: { step: 8 } },
    { time: at(4), step: 7, kind: 'environment_ran', message: 'ran', data: { tag: 'lake', version: 'b', step: 9 } },
  ].map(line => eventLine(typeof line === 'string' ? line : JSON.stringify(line)));
  expect(markedEntries(lines).map(({ step, markedAt }) => [step, markedAt])).toEqual([
    [4, null],
    [5, 9],
    [null, null],
    [7, 8],
    [7, 9],
  ]);
});
