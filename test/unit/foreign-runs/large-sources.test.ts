// Large files: the newest rollouts are shown before a file or step is read completely, and the result is the same.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
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
