// Append-only JSON lines: committed lines, the lines that a reader returns, and the lines that remain after a crash or
// on a full disk.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { LineLog, readDamagedLines, readLines, readValues } from '../../../../extension/trainer/store/line-log';
import type { SyncFileSystem } from '../../../../extension/node/files';
import { syncFileSystem } from '../../../../extension/node/files';
import { mostLineBytes } from '../../../../extension/run-data/run-file-names';
import { UserError } from '../../../../extension/common/user-error';
import { diskFull, failingSyncFiles } from '../../../support/failing-files';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const file = (): string => join(folder(), 'log.jsonl');
const text = (): string => readFileSync(file(), 'utf8');
const values = (from = 0): unknown[] => [...readValues(file(), value => value, from)].map(line => line.value);

test('lines are appended and read back from any offset', () => {
  const log = new LineLog(file(), { fsync: 'each' });
  const offsets = [{ step: 1 }, { step: 2, text: 'zwölf\n√' }, [3]].map(value => log.append(value));
  log.close();
  expect(text()).toBe('{"step":1}\n{"step":2,"text":"zwölf\\n√"}\n[3]\n');
  expect(offsets.at(-1)).toBe(Buffer.byteLength(text()));
  expect(values()).toEqual([{ step: 1 }, { step: 2, text: 'zwölf\n√' }, [3]]);
  expect(values(offsets[1])).toEqual([[3]]);
  expect([...readLines(file())].map(line => line.next)).toEqual(offsets);
});

test('an incomplete last line is skipped by readers and cut by the next writer', () => {
  writeFileSync(file(), '{"a":1}\n{"b":');
  expect(values()).toEqual([{ a: 1 }]);
  const log = new LineLog(file(), { fsync: 'explicit' });
  expect(log.offset).toBe(8);
  log.append({ c: 3 });
  log.close();
  expect(text()).toBe('{"a":1}\n{"c":3}\n');
});

test('a tail longer than a block and lines longer than a block are handled', () => {
  const long = 'x'.repeat(200_000);
  writeFileSync(file(), `${JSON.stringify(long)}\n1\n"${long}`);
  expect(values()).toEqual([long, 1]);
  new LineLog(file(), { fsync: 'explicit' }).close();
  expect(values()).toEqual([long, 1]);
  expect(text()).toHaveLength(200_005);
});

test('a resume truncates to the end of a line only', () => {
  const log = new LineLog(file(), { fsync: 'explicit' });
  const first = log.append(1);
  log.append(2);
  expect(() => log.truncateTo(first - 1)).toThrow(
    /has no line that ends at byte 1 \(its complete lines end at byte 4\): resume from another checkpoint$/,
  );
  expect(() => log.truncateTo(5)).toThrow(UserError);
  log.truncateTo(first);
  log.append(3);
  expect(text()).toBe('1\n3\n');
  log.truncateTo(0);
  expect(text()).toBe('');
  log.close();
});

test('a full disk leaves complete lines, the error names file and remedy, and the log can continue', () => {
  const failure = { calls: 0, at: Infinity, after: 'works' as const };
  // Half of each write succeeds before the disk is full.
  const half: SyncFileSystem = {
    ...syncFileSystem,
    writeSync: ((fd: number, bytes: Uint8Array, from: number, length: number, position: number) => {
      if (failure.at === Infinity) return syncFileSystem.writeSync(fd, bytes, from, length, position);
      if (from > 0) throw diskFull();
      return syncFileSystem.writeSync(fd, bytes, from, Math.ceil(length / 2), position);
    }) as typeof syncFileSystem.writeSync,
  };
  const log = new LineLog(file(), { fsync: 'explicit', fs: half });
  log.append({ step: 1 });
  failure.at = 1;
  expect(() => log.append({ step: 2 })).toThrow(
    `store: cannot append to ${file()} (ENOSPC): the disk is full: free space`,
  );
  expect(text()).toBe('{"step":1}\n');
  failure.at = Infinity;
  log.append({ step: 3 });
  log.close();
  expect(text()).toBe('{"step":1}\n{"step":3}\n');
});

test('bytes that could not be removed after a failure do not become a line', () => {
  const failure = { calls: 0, at: Infinity, after: 'dead' as const };
  const log = new LineLog(file(), { fsync: 'each', fs: failingSyncFiles(failure) });
  log.append(1);
  failure.at = failure.calls + 2; // the write succeeds, fsync and the clean-up fail
  expect(() => log.append('a long line that was written whole')).toThrow(UserError);
  failure.at = Infinity;
  log.append(2);
  log.close();
  expect(values()).toEqual([1, 2]);
});

test('a damaged line in the middle is reported with its position', () => {
  writeFileSync(file(), '{"a":1}\n{oops}\n');
  expect(() => values()).toThrow(
    /the line at byte 8 of .*log\.jsonl is damaged \(.*\): restore the file or remove the line/,
  );
  const number = (value: unknown): number => z.number().parse(value);
  expect(() => [...readValues(file(), number)]).toThrow(/the line at byte 0/);
});

test('a missing file has no lines; a writer may append while another reads', () => {
  expect([...readLines(file())]).toEqual([]);
  const log = new LineLog(file(), { fsync: 'explicit' });
  log.append(1);
  const reader = readLines(file());
  expect(reader.next().value?.text).toBe('1');
  appendFileSync(file(), '2\n');
  expect(reader.next().value?.text).toBe('2');
  log.close();
});

test('from a damaged file, overlong lines are dropped and an incomplete last line is returned', () => {
  writeFileSync(file(), `1\n${'x'.repeat(mostLineBytes + 100_000)}\n2\n{"torn"`);
  expect([...readDamagedLines(file())].map(line => line.text)).toEqual(['1', '2', '{"torn"']);
  expect(() => [...readLines(file())]).toThrow(
    /the line at byte 2 of .*log\.jsonl has more than \d+ bytes: remove the file/,
  );
  writeFileSync(file(), `1\n${'x'.repeat(mostLineBytes + 100_000)}`);
  expect([...readDamagedLines(file())].map(line => line.text)).toEqual(['1']);
});
