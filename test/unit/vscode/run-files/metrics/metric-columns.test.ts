// A run's metrics as columns: from the trainer's column file, from the lines alone, and from a cached column file.
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { maximum } from '../../../../../extension/common/lists';
import { MetricColumns } from '../../../../../extension/vscode/run-files/metrics/metric-columns';
import { segmentRows } from '../../../../../extension/run-data/metric-segments';
import { ColumnLog } from '../../../../../extension/trainer/store/column-log';

let root: string;
let folder: string;
let cache: string;
const metrics = () => join(folder, 'metrics.jsonl');
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ragen-columns-'));
  folder = join(root, 'run');
  cache = join(root, 'cache', 'columns');
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true }));

const text = (step: number, note = 'a') =>
  `${JSON.stringify({ step, time: note, wall_s: step * 2, 'x/y': Math.sin(step), ...(step % 10 === 0 && { rare: step }) })}\n`;
const lines = (first: number, last: number, note?: string) =>
  Array.from({ length: last - first + 1 }, (_, i) => text(first + i, note)).join('');
/** Writes the folder as a trainer does. */
function trained(last: number): void {
  writeFileSync(metrics(), lines(1, last));
  new ColumnLog(join(folder, 'metrics.columns'), metrics(), readFileSync(metrics()).length).close();
}

test('columns equal the lines, with and without a trainer’s column file', async () => {
  const last = segmentRows * 2 + 40;
  trained(last);
  const beside = await new MetricColumns(folder, null).update();
  rmSync(join(folder, 'metrics.columns'));
  const parsed = await new MetricColumns(folder, null).update();
  for (const table of [beside, parsed]) {
    expect(table.rows).toBe(last);
    expect(table.keys).toEqual(['wall_s', 'x/y', 'rare']);
    expect([...table.column('step')]).toEqual(Array.from({ length: last }, (_, i) => i + 1));
    expect(table.column('x/y')[700]).toBe(Math.sin(701));
    expect([...table.column('rare').subarray(last - 2)]).toEqual([NaN, last % 10 === 0 ? last : NaN]);
    expect([...table.column('nowhere')].every(Number.isNaN)).toBe(true);
  }
});

test('columns grow with the lines, across segments and torn tails', async () => {
  const columns = new MetricColumns(folder, null);
  expect((await columns.update()).rows).toBe(0);
  writeFileSync(metrics(), lines(1, 10));
  const table = await columns.update();
  expect(table.column('rare')[9]).toBe(10);
  appendFileSync(metrics(), lines(11, segmentRows + 3) + text(segmentRows + 4).slice(0, 12));
  expect((await columns.update()).rows).toBe(segmentRows + 3);
  appendFileSync(metrics(), text(segmentRows + 4).slice(12));
  expect((await columns.update()).rows).toBe(segmentRows + 4);
  expect(table.column('x/y')).toHaveLength(segmentRows + 4);
  expect(table.column('x/y')[segmentRows + 3]).toBe(Math.sin(segmentRows + 4));
  expect(table.column('x/y')[0]).toBe(Math.sin(1));
  expect([...table.lineRange(9, 11)]).toEqual([
    { step: 10, wall_s: 20, 'x/y': Math.sin(10), rare: 10 },
    { step: 11, wall_s: 22, 'x/y': Math.sin(11) },
  ]);
  expect(columns.epoch).toBe(0);
});

test('a resume that truncates the lines begins a new epoch, even if the file has since grown past it', async () => {
  trained(segmentRows + 100);
  const columns = new MetricColumns(folder, cache);
  await columns.update();
  truncateSync(metrics(), lines(1, 300).length);
  appendFileSync(metrics(), lines(301, segmentRows + 200, 'b'));
  const table = await columns.update();
  expect(columns.epoch).toBe(1);
  expect(table.rows).toBe(segmentRows + 200);
  // The trainer's columns no longer match and must not be used.
  expect([...table.column('step')]).toEqual(Array.from({ length: segmentRows + 200 }, (_, i) => i + 1));
});

test('columns of another file are not used', async () => {
  trained(segmentRows);
  writeFileSync(metrics(), lines(1001, 1000 + segmentRows));
  const table = await new MetricColumns(folder, null).update();
  expect(table.column('step')[0]).toBe(1001);
});

test('parsed columns are cached, reused by the next reader, and dropped when they do not match', async () => {
  writeFileSync(metrics(), lines(1, segmentRows * 2 + 7));
  await new MetricColumns(folder, cache).update();
  const [name] = readdirSync(cache);
  const kept = readFileSync(join(cache, name));
  expect(kept.length).toBeGreaterThan(segmentRows * 2 * 8 * 4);
  // Same bytes as a trainer's column file.
  new ColumnLog(join(root, 'other'), metrics(), readFileSync(metrics()).length).close();
  expect(readFileSync(join(root, 'other'))).toEqual(kept);
  // Cached columns are used: a modified value in them shows.
  const marked = Buffer.from(kept);
  marked.writeDoubleLE(123.5, marked.length - 8 * segmentRows * 2); // first value of the second-to-last column
  writeFileSync(join(cache, name), marked);
  expect((await new MetricColumns(folder, cache).update()).column('x/y')[segmentRows]).toBe(123.5);
  appendFileSync(metrics(), lines(segmentRows * 2 + 8, segmentRows * 3));
  await new MetricColumns(folder, cache).update();
  expect(readFileSync(join(cache, name)).length).toBeGreaterThan(kept.length * 1.4);
  writeFileSync(metrics(), lines(1, segmentRows + 1, 'other'));
  expect((await new MetricColumns(folder, cache).update()).rows).toBe(segmentRows + 1);
  expect(readFileSync(join(cache, name)).length).toBeLessThan(kept.length * 0.6);
});

test('damaged lines and lines with earlier steps are skipped', async () => {
  writeFileSync(metrics(), `${text(1)}nonsense\n{"step":"2"}\n${text(3)}${text(2)}${text(4)}`);
  const table = await new MetricColumns(folder, null).update();
  expect([...table.column('step')]).toEqual([1, 3, 4]);
});

test('a long file is read in slices that do not block the event loop, its newest part first', async () => {
  const padding = 'p'.repeat(4000);
  writeFileSync(metrics(), Array.from({ length: 2500 }, (_, i) => text(i + 1, padding)).join(''));
  const columns = new MetricColumns(folder, null);
  expect(await columns.isLong()).toBe(true);
  const newest = await columns.newest();
  expect(newest.rows).toBeGreaterThan(200);
  expect(newest.column('step').at(-1)).toBe(2500);
  const received: number[] = [];
  /** Number of reports at each turn of the event loop. */
  const turns = [0];
  let next = setImmediate(function turn() {
    turns.push(received.length);
    next = setImmediate(turn);
  });
  const table = await columns.update(read => received.push(read));
  clearImmediate(next);
  turns.push(received.length);
  expect(table.rows).toBe(2500);
  expect(received.length).toBeGreaterThan(20);
  expect(received).toEqual([...received].sort((a, b) => a - b));
  expect(maximum(turns.slice(1).map((reports, i) => reports - turns[i]))).toBe(1); // one slice a turn
  expect(await columns.isLong()).toBe(false);
});
