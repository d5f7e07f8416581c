// The column file beside metrics.jsonl: the content of a segment, and the segments that remain after a resume. Its
// errors never end a run.
import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decodeSegments, segmentRows } from '../../../../extension/run-data/metric-segments';
import { ColumnLog } from '../../../../extension/trainer/store/column-log';
import { syncFileSystem } from '../../../../extension/node/files';
import { LineLog } from '../../../../extension/trainer/store/line-log';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const metrics = () => join(folder(), 'metrics.jsonl');
const columns = () => join(folder(), 'metrics.columns');
const line = (step: number, note = 't') => ({
  step,
  time: note,
  wall_s: step / 2,
  ...(step % 10 === 0 && { rare: -step }),
});

/** Appends the lines `first` to `last` in one session of a trainer. Returns the end offset of each step's line. */
function session(first: number, last: number, note?: string): Map<number, number> {
  const log = new LineLog(metrics(), { fsync: 'explicit' });
  const beside = new ColumnLog(columns(), metrics(), log.offset);
  const ends = new Map<number, number>();
  for (let step = first; step <= last; step++) {
    const end = log.append(line(step, note));
    beside.append(line(step, note), end);
    ends.set(step, end);
  }
  log.close();
  beside.close();
  return ends;
}

const written = () => {
  const bytes = new Uint8Array(readFileSync(columns()));
  return decodeSegments(bytes.buffer).map(({ segment }) => segment);
};

test('segments contain the lines as columns, with gaps, and the byte range of these lines', () => {
  const ends = session(1, segmentRows * 2 + 5);
  const [first, second, ...none] = written();
  expect(none).toEqual([]);
  expect([first.from, first.to, second.from, second.to]).toEqual([
    0,
    ends.get(segmentRows),
    ends.get(segmentRows),
    ends.get(segmentRows * 2),
  ]);
  expect([...first.columns.keys()]).toEqual(['step', 'wall_s', 'rare']);
  expect([...first.columns.get('step')!]).toEqual(Array.from({ length: segmentRows }, (_, i) => i + 1));
  expect([...first.columns.get('rare')!.subarray(8, 11)]).toEqual([NaN, -10, NaN]);
  const text = readFileSync(metrics());
  expect(text.subarray(0, first.to).toString('base64', first.to - 64)).toBe(first.tail);
});

test('a session continues with the lines that are in no segment yet', () => {
  session(1, 300);
  expect(written()).toEqual([]);
  session(301, 600);
  session(601, segmentRows * 2);
  const steps = written().flatMap(segment => [...segment.columns.get('step')!]);
  expect(steps).toEqual(Array.from({ length: segmentRows * 2 }, (_, i) => i + 1));
});

test('a resume drops the segments of truncated or changed lines', () => {
  const ends = session(1, segmentRows * 3);
  truncateSync(metrics(), ends.get(segmentRows + 100));
  session(segmentRows + 101, segmentRows * 2, 'again');
  expect(written().map(segment => segment.to)).toEqual([ends.get(segmentRows), readFileSync(metrics()).length]);
  // Another program replaces the file by a longer text that has the old length up to the segments' ends.
  const text = readFileSync(metrics(), 'utf8')
    .replaceAll('"time":"t"', '"time":"u"')
    .replaceAll('"rare":-', '"rare": ');
  writeFileSync(metrics(), text.replaceAll('wall_s":', 'wall_s":1'));
  session(segmentRows * 2 + 1, segmentRows * 2 + 1);
  expect([...written()[0].columns.get('wall_s')!.subarray(0, 2)]).toEqual([10.5, 11]);
});

test('an incomplete segment is cut off, and an invalid file is recreated', () => {
  session(1, segmentRows * 2);
  const whole = readFileSync(columns());
  truncateSync(columns(), whole.length - 9);
  session(segmentRows * 2 + 1, segmentRows * 2 + 1);
  expect(readFileSync(columns())).toEqual(whole); // recreated from the lines
  writeFileSync(columns(), 'RAGNCOL1 nonsense');
  session(segmentRows * 2 + 2, segmentRows * 2 + 2);
  expect(readFileSync(columns())).toEqual(whole);
  appendFileSync(columns(), whole.subarray(0, 20));
  expect(written()).toHaveLength(2);
});

test('on a full disk, only the columns end; lines are still written', () => {
  const full = () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  };
  const beside = new ColumnLog(columns(), metrics(), 0, { ...syncFileSystem, writeSync: full });
  writeFileSync(metrics(), 'x'.repeat(segmentRows * 20));
  for (let step = 1; step <= segmentRows + 3; step++) expect(() => beside.append(line(step), step * 10)).not.toThrow();
  beside.close();
  expect(existsSync(columns())).toBe(true);
  expect(written()).toEqual([]);
});
