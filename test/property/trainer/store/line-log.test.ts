// A log cut at any byte reopens with complete lines; a writer that fails at any call leaves complete lines.
import fc from 'fast-check';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LineLog, readValues } from '../../../../extension/trainer/store/line-log';
import { failingSyncFiles } from '../../../support/failing-files';
import type { Failure } from '../../../support/failing-files';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-log-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
const file = (): string => join(folder, 'log.jsonl');
const read = (): unknown[] => [...readValues(file(), value => value)].map(line => line.value);

test('a log cut at any byte keeps the complete lines before the cut', () => {
  const values = [{ step: 1, text: 'a\nb' }, 'zwölf √ 😀', [], { nested: { x: [1, 2] } }];
  const bytes = Buffer.from(values.map(value => `${JSON.stringify(value)}\n`).join(''));
  for (let length = 0; length <= bytes.length; length++) {
    const whole = bytes.subarray(0, length).filter(byte => byte === 0x0a).length;
    writeFileSync(file(), bytes.subarray(0, length));
    expect(read()).toEqual(values.slice(0, whole));
    const log = new LineLog(file(), { fsync: 'explicit' });
    log.append('next');
    log.close();
    expect(read()).toEqual([...values.slice(0, whole), 'next']);
  }
});

test('a log returns any values after any order of appends, truncations and reads', () => {
  const step = fc.oneof(
    fc.jsonValue().map(value => ({ append: value })),
    fc.nat(10).map(back => ({ back })),
    fc.nat(30).map(tear => ({ tear })),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), steps => {
      rmSync(file(), { force: true });
      let log = new LineLog(file(), { fsync: 'explicit' });
      const kept: { value: unknown; offset: number }[] = [];
      for (const action of steps) {
        if ('append' in action)
          kept.push({ value: JSON.parse(JSON.stringify(action.append)), offset: log.append(action.append) });
        else if ('back' in action) {
          kept.splice(Math.max(0, kept.length - action.back));
          log.truncateTo(kept.at(-1)?.offset ?? 0);
        } else {
          // The process dies while it writes the last bytes.
          log.close();
          const size = readFileSync(file()).length;
          truncateSync(file(), Math.max(0, size - action.tear));
          log = new LineLog(file(), { fsync: 'explicit' });
          while ((kept.at(-1)?.offset ?? 0) > log.offset) kept.pop();
          expect(log.offset).toBe(kept.at(-1)?.offset ?? 0);
        }
        expect(read()).toEqual(kept.map(line => line.value));
      }
      log.close();
    }),
    { numRuns: 100 },
  );
});

test('a failure at any call loses no committed line', () => {
  for (const after of ['works', 'dead'] as const) {
    for (let at = 1; ; at++) {
      rmSync(file(), { force: true });
      const failure: Failure = { calls: 0, at, after };
      const done: number[] = [];
      let log: LineLog | undefined;
      for (let i = 0; i < 4; i++) {
        try {
          log ??= new LineLog(file(), { fsync: 'each', fs: failingSyncFiles(failure) });
          log.append(i);
          done.push(i);
        } catch (error) {
          expect((error as Error).message).toMatch(/^store: cannot .*ENOSPC/);
        }
      }
      log?.close();
      const seen = read();
      // A line reported as committed is present. A line reported as failed is absent, except if the process died before
      // it could remove the line.
      if (after === 'works') expect(seen).toEqual(done);
      else expect(seen.slice(0, done.length)).toEqual(done);
      if (failure.calls < at) break;
    }
  }
});
