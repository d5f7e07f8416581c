// What is not shown of another trainer's run is said: damaged event files, names and rollouts beyond the limits, and
// files that cannot be read. Everything else of the run is shown.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AttachedEpisodes } from '../../../extension/foreign-runs/attached-episodes';
import { AttachedRun } from '../../../extension/foreign-runs/attached-run';
import { followRun } from '../../../extension/foreign-runs/follow-run';
import { leftOutOf as leftOut } from '../../../extension/foreign-runs/left-out';
import { MetricTable } from '../../../extension/foreign-runs/metric-table';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import type { RunFolder } from '../../../extension/trainer/store/run-folder';
import { attachOnce, contentsOf } from '../../support/attached';
import { eventRecord, scalarEvent } from '../../support/event-file';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

/** Writes a file of the run that could no longer be being written. */
function write(name: string, content: string | Buffer): string {
  const file = join(workspace(), 'run', name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  const old = new Date(Date.now() - 60_000);
  utimesSync(file, old, old);
  return file;
}

const leftOutOf = (folder: RunFolder): string[] =>
  statusSchema.parse(JSON.parse(readFileSync(folder.file('status.json'), 'utf8'))).left_out ?? [];
const attach = () => attachOnce(workspace(), join(workspace(), 'run'));

describe('an event file', () => {
  const record = (step: number, options = {}) => eventRecord(scalarEvent(step, 'loss', step / 4), options);
  const name = 'events.out.tfevents.1.host';
  const other = () => write('events.out.tfevents.2.host', eventRecord(scalarEvent(9, 'loss', 1)));

  it.each([
    ['with a length whose checksum is wrong', { lengthError: 1 }, 'has a length with a wrong checksum at byte'],
    ['with a record of many gigabytes', { length: 2 ** 31 }, 'has a record of more than 16777216 bytes at byte'],
  ])('%s is read to there', async (_, options, reason) => {
    const file = write(name, Buffer.concat([record(1), record(2, options), record(3)]));
    other();
    const { metrics, folder } = await attach();
    expect(metrics.map(line => line.step)).toEqual([1, 9]);
    expect(leftOutOf(folder)).toEqual([expect.stringContaining(`${file} ${reason} ${record(1).length}: `)]);
    expect(readFileSync(folder.file('events.jsonl'), 'utf8')).toContain(reason);
  });

  it('with a payload whose checksum is wrong lacks this record only', async () => {
    const file = write(name, Buffer.concat([record(1), record(2, { payloadError: 1 }), record(3)]));
    const { metrics, folder } = await attach();
    expect(metrics.map(line => line.step)).toEqual([1, 3]);
    expect(leftOutOf(folder)).toEqual([
      `${file} has 1 record with a wrong checksum: their metrics are not shown; copy the file again`,
    ]);
  });

  it('with a name of a million characters lacks this metric only', async () => {
    write(name, Buffer.concat([record(1), eventRecord(scalarEvent(1, 'x'.repeat(1e6), 1)), record(2)]));
    const { metrics, folder } = await attach();
    expect(metrics.map(line => line['loss'])).toEqual([0.25, 0.5]);
    expect(leftOutOf(folder).join()).toContain('names have more than 1000 characters are not shown');
    expect(readFileSync(folder.file('metrics.jsonl')).length).toBeLessThan(1000);
  });
});

it('names, steps and values beyond the limits of the metrics are left out, and said', () => {
  const tableOf = (limits: object) =>
    new MetricTable([], { cells: 100, rows: 100, names: 100, nameLength: 100, ...limits });
  const named = tableOf({ names: 2 });
  named.merge({ step: 1, values: { a: 1, b: 2, c: 3 } }, 0);
  expect(['a', 'b', 'c'].map(name => named.value(1, name))).toEqual([1, 2, undefined]);
  expect(named.limits).toEqual(['the metrics have more than 2 names: the others are not shown; attach fewer metrics']);
  const filled = tableOf({ cells: 5 });
  for (const step of [1, 2, 3]) filled.merge({ step, values: { a: step, b: step } }, 0);
  expect([filled.value(2, 'b'), filled.value(3, 'a')]).toEqual([2, undefined]);
  expect(filled.limits.join()).toContain('more than 5 values');
  const long = tableOf({ rows: 2 });
  for (const step of [1, 2, 3, 2]) long.merge({ step, values: { a: step } }, 0);
  expect(long.steps).toEqual([1, 2]);
  expect(long.limits.join()).toContain('more than 2 steps');
});

it('rollouts of a step beyond the limit are counted, also by a later process', async () => {
  const line = '{"input":"a","output":"b","score":1}\n';
  write('rollouts/1.jsonl', line);
  write('rollouts/2.jsonl', `${line.repeat(8)}no rollout\n`);
  const source = await SourceFolder.open(join(workspace(), 'run'));
  const { adapter, run } = await recognise(source);
  const folder = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const { signal } = new AbortController();
  const convert = async () => {
    const converted = new AttachedEpisodes(folder, source, 1e9, 5);
    expect(await converted.convert((await run.rollouts()).units, { until: () => false, signal })).toBe(0);
    await converted.save();
    converted.close();
    return leftOut(source, converted);
  };
  const sentences = await convert();
  expect(sentences).toEqual([
    '3 rollouts of step 2 are not shown, because a step may have 5 rollouts and 1 GB: attach files with fewer rollouts per step, or give a larger --space',
    '1 line of the rollouts could not be read, so these rollouts are not shown',
  ]);
  const { episodes } = contentsOf(folder);
  expect([episodes['step-000001'].length, episodes['step-000002'].length]).toEqual([1, 5]);
  expect(await convert()).toEqual(sentences);
});

it('a step beyond the limit of bytes is cut, and said', async () => {
  const line = `${JSON.stringify({ input: 'a', output: 'b'.repeat(10_000), score: 1 })}\n`;
  write('rollouts/1.jsonl', line.repeat(10));
  const { folder, episodes } = await attachOnce(workspace(), join(workspace(), 'run'), { bytes: 100_000 });
  const { length } = episodes['step-000001'];
  expect(length).toBeLessThan(6);
  expect(leftOutOf(folder)[0]).toContain(`${10 - length} rollouts of step 1 are not shown`);
  expect(leftOutOf(folder)[0]).toContain('give a larger --space');
});

it('a file of metrics that cannot be read does not prevent that the rest is shown', async () => {
  write('log.jsonl', '{"step":1,"data":{"a":1}}\n');
  write('rollouts/1.jsonl', '{"input":"a","output":"b","score":1}\n');
  const source = await SourceFolder.open(join(workspace(), 'run'));
  const { adapter, run } = await recognise(source);
  const folder = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const read = () => Promise.reject(Object.assign(new Error('permission denied'), { code: 'EACCES' }));
  const broken = { ...run, metrics: [{ name: 'secret.jsonl', read }, ...run.metrics] };
  await followRun(folder, source, broken, {
    ...{ episodeBytes: 1e9, once: true, signal: new AbortController().signal },
    onChange: () => undefined,
  });
  const { metrics, episodes } = contentsOf(folder);
  expect([metrics.length, Object.keys(episodes)]).toEqual([1, ['step-000001']]);
  expect(leftOutOf(folder)).toEqual([expect.stringMatching(/cannot read .*\/run\/secret\.jsonl \(EACCES\)/)]);
});
