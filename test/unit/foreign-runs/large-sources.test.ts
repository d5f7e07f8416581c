// Large files: the newest rollouts are shown before a file or step is read completely, and the result is the same. The
// bytes that opening reads do not grow with the rollouts.
import { linkSync, mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { AttachedEpisodes } from '../../../extension/foreign-runs/attached-episodes';
import { AttachedRun } from '../../../extension/foreign-runs/attached-run';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { StepRanges } from '../../../extension/foreign-runs/step-ranges';
import { contentsOf } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const { signal } = new AbortController();

function write(name: string, lines: readonly unknown[]): void {
  const file = join(workspace(), name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, lines.map(line => `${JSON.stringify(line)}\n`).join(''));
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
}

it('the beginning of a large newest step is converted first, then the complete step', async () => {
  const text = 'word '.repeat(20_000);
  const rollouts = Array.from({ length: 60 }, (_, i) => ({ input: `user\n${text}`, output: `a${i}`, score: i }));
  write('run/rollouts/1.jsonl', rollouts.slice(0, 2));
  write('run/rollouts/2.jsonl', rollouts);
  write('run/log.jsonl', [{ step: 2, data: { 'critic/score/mean': 1 } }]);
  const source = await SourceFolder.open(join(workspace(), 'run'));
  const { adapter, run } = await recognise(source);
  const folder = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const episodes = new AttachedEpisodes(folder, source, 1e9);
  const { units } = await run.rollouts();
  expect(await episodes.convert(units, { until: () => true, signal })).toBe(2);
  const counts = () => Object.entries(contentsOf(folder).episodes).map(([name, all]) => [name, all.length]);
  const [[name, count]] = counts();
  expect(name).toBe('step-000002');
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(60);
  expect(await episodes.convert(units, { until: () => true, signal })).toBe(2); // the beginning is not converted again
  expect(await episodes.convert(units, { until: () => false, signal })).toBe(0);
  expect(counts()).toEqual([['step-000001', 2], ['step-000002', 60]]); // prettier-ignore
  await episodes.save();
  episodes.close();
  const index = readFileSync(folder.file('episodes/index.jsonl'), 'utf8').trim().split('\n');
  expect(index).toHaveLength(2);
});

it('the last steps of a large file of JSON lines are known after the first part', async () => {
  const lines = Array.from({ length: 3000 }, (_, i) => ({ step: Math.floor(i / 300), i, text: 'x'.repeat(4000) }));
  write('all.jsonl', lines);
  const source = await SourceFolder.open(join(workspace(), 'all.jsonl'));
  const stepIn = (record: Record<string, unknown>) => record['step'] as number;
  const ranges = new StepRanges(source, 'all.jsonl', stepIn, 2 ** 20);
  expect(await ranges.scan()).toBe(true);
  const first = ranges.steps.map(({ step }) => step);
  expect(first.at(-1)).toBe(9);
  expect(first).not.toContain(0);
  const numbers = async (from: StepRanges, step: number): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const record of from.records(step)) found.push(record?.['i']);
    return found;
  };
  const last = Array.from({ length: 300 }, (_, i) => 2700 + i);
  expect(await numbers(ranges, 9)).toEqual(last);
  for (let more = true; more;) {
    more = await ranges.scan();
    expect(await numbers(ranges, 9)).toEqual(last); // no line is lost or doubled while the two parts meet
  }
  const whole = new StepRanges(source, 'all.jsonl', stepIn);
  await whole.scan();
  expect(ranges.steps).toEqual(whole.steps);
  expect(whole.steps.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

/** Returns the bytes that `work` reads from all files. */
async function bytesReadBy(work: () => Promise<void>): Promise<number> {
  const handle = await open(import.meta.filename);
  const files = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const spy = vi.spyOn(files, 'read');
  try {
    await work();
    const results = await Promise.all(spy.mock.results.map(({ value }) => value as Promise<{ bytesRead: number }>));
    return results.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  } finally {
    spy.mockRestore();
  }
}

/** Opens a run until its metrics and newest rollouts are shown; returns the shown steps. */
async function opened(path: string, name: string): Promise<string[]> {
  const source = await SourceFolder.open(path);
  const { adapter, run } = await recognise(source);
  const folder = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id, name });
  const attached = AttachedRun.open(folder, source, run, 1e9);
  await attached.updateMetrics();
  await attached.episodes.convert((await run.rollouts()).units, { until: () => true, signal });
  await attached.close();
  return Object.keys(contentsOf(folder).episodes);
}

it('opening a run with a file per step reads a bounded part of it, however many rollouts it has', async () => {
  const text = 'word '.repeat(3000);
  const rollouts = Array.from({ length: 800 }, (_, i) => ({ input: `user\n${text}`, output: `a${i}`, score: i }));
  write('run/rollouts/1.jsonl', rollouts);
  write('run/log.jsonl', [{ step: 1, data: { 'critic/score/mean': 1 } }]);
  const dumps = join(workspace(), 'run/rollouts');
  const measured: { total: number; read: number }[] = [];
  for (const steps of [10, 40]) {
    for (let step = readdirSync(dumps).length + 1; step <= steps; step++)
      linkSync(join(dumps, '1.jsonl'), join(dumps, `${step}.jsonl`)); // links take no space
    const total = steps * statSync(join(dumps, '1.jsonl')).size;
    const read = await bytesReadBy(async () => {
      expect(await opened(join(workspace(), 'run'), `${steps} steps`)).toEqual([`step-0000${steps}`]);
    });
    measured.push({ total, read });
  }
  const [few, many] = measured;
  expect(many.total).toBeGreaterThan(450e6);
  // The rollouts of the newest step that make 4 MB of episodes, and the first lines of some files.
  expect(many.read).toBeGreaterThan(1e6);
  expect(many.read).toBeLessThan(10e6);
  expect(many.read).toBe(few.read);
});

it('opening one large file of JSON lines reads its first part and its end', async () => {
  const lines = (step: number) =>
    Array.from({ length: 30 }, (_, i) => ({ step, prompt: 'x'.repeat(1e6), completion: `a${i}`, reward: i }));
  write('all.jsonl', [1, 2, 3, 4].flatMap(lines));
  const file = join(workspace(), 'all.jsonl');
  expect(statSync(file).size).toBeGreaterThan(119e6);
  const read = await bytesReadBy(async () => {
    expect(await opened(file, 'all')).toEqual(['step-000004']);
  });
  // 64 MB of the first part, 8 MB of the end, 4 MB of rollouts, and less than two slices more.
  expect(read).toBeGreaterThan(2 ** 26 + 2 ** 23);
  expect(read).toBeLessThan(2 ** 26 + 2 ** 23 + 2 ** 24);
});
