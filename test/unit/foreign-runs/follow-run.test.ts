// Files that grow, restart, rotate and end in the middle of a line.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { MetricSource, RolloutUnit } from '../../../extension/foreign-runs/adapter';
import { AttachedRun } from '../../../extension/foreign-runs/attached-run';
import { UserError } from '../../../extension/common/user-error';
import { followRun } from '../../../extension/foreign-runs/follow-run';
import { growingRun } from '../../../extension/foreign-runs/growing-run';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { isIndexLine } from '../../../extension/run-data/episode-index-line';
import { attachOnce, contentsOf } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

const row = (step: number, score: number): string =>
  `${JSON.stringify({ step, data: { 'critic/score/mean': score } })}\n`;
const rollout = (input: string, score: number): string =>
  `${JSON.stringify({ input: `user\n${input}\nassistant\n`, output: '<think>x</think><answer>y</answer>', score, gts: '', step: 1 })}\n`;

/** Creates a verl run and returns the paths of its files. */
function foreign(): { folder: string; metrics: string; dump(step: number, lines: string[]): void } {
  const folder = join(workspace(), 'verl-run');
  mkdirSync(join(folder, 'rollouts'), { recursive: true });
  const old = new Date(Date.now() - 60_000);
  return {
    folder,
    metrics: join(folder, 'log.jsonl'),
    dump(step, lines) {
      const file = join(folder, 'rollouts', `${step}.jsonl`);
      writeFileSync(file, lines.join(''));
      utimesSync(file, old, old); // a file that changed a moment ago may still be written
    },
  };
}

/** Shows a folder at another place through FUSE, as network drives are; changes made below are not announced there. */
function mounted(folder: string): { place: string; unmount(): void } {
  const place = `${folder}-mounted`;
  mkdirSync(place);
  execFileSync('bindfs', ['--no-allow-other', folder, place]);
  return { place, unmount: () => void execFileSync('fusermount3', ['-u', '-z', place]) };
}

const canMount =
  existsSync('/dev/fuse') && ['bindfs', 'fusermount3'].every(tool => spawnSync(tool, ['-V']).status === 0);
if (!canMount && process.env.RAGEN_REQUIRE_FUSE === '1')
  throw new Error('RAGEN_REQUIRE_FUSE is set, but bindfs, fusermount3 or /dev/fuse is missing: install bindfs');

it('shows steps as they are written, also with a truncated last line and rewritten files', () => followsGrowth(false));

it.skipIf(!canMount)('follows files on a mounted drive, which announces no changes', () => followsGrowth(true));

async function followsGrowth(isMounted: boolean): Promise<void> {
  const { folder: written, metrics, dump } = foreign();
  const mount = isMounted ? mounted(written) : undefined;
  const folder = mount?.place ?? written;
  writeFileSync(metrics, row(1, 0.1) + row(2, 0.2).slice(0, 20));
  dump(1, [rollout('a', 1), rollout('a', 0)]);
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  const attached = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const stop = new AbortController();
  const following = followRun(attached, source, run, {
    ...{ episodeBytes: 1e9, once: false, signal: stop.signal },
    onChange: () => undefined,
  });
  const scores = () => contentsOf(attached).metrics.map(line => [line.step, line['critic/score/mean']]);
  const counts = () => Object.entries(contentsOf(attached).episodes).map(([name, { length }]) => [name, length]);
  await expect.poll(scores).toEqual([[1, 0.1]]);
  await expect.poll(counts).toEqual([['step-000001', 2]]);
  expect(attached.readStatus()).toMatchObject({ state: 'running', step: 1 });

  appendFileSync(metrics, row(2, 0.2).slice(20) + row(3, 0.3));
  dump(2, [rollout('b', 1)]);
  dump(1, [rollout('a', 1), rollout('a', 0), rollout('c', 1)]);
  await expect.poll(scores).toEqual([[1, 0.1], [2, 0.2], [3, 0.3]]); // prettier-ignore
  await expect.poll(counts).toEqual([['step-000001', 3], ['step-000002', 1]]); // prettier-ignore

  // verl empties its file when it resumes from a checkpoint: steps 2 and 3 are repeated, step 1 is only known here.
  writeFileSync(metrics, row(2, 0.25));
  await expect.poll(scores).toEqual([[1, 0.1], [2, 0.25]]); // prettier-ignore

  stop.abort();
  await following;
  expect(attached.readStatus()?.state).toBe('stopped');
  expect(existsSync(attached.file('lease'))).toBe(false);
  const index = readFileSync(attached.file('episodes/index.jsonl'), 'utf8').trim().split('\n');
  expect(index.map(line => JSON.parse(line) as unknown).every(isIndexLine)).toBe(true);
  mount?.unmount();
}

it('sources that appear later are read: a log, a folder of validations', async () => {
  const { folder, metrics, dump } = foreign();
  dump(1, [rollout('a', 1)]);
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  expect(run.metrics).toEqual([]);
  const made = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const attached = AttachedRun.open(made, source, run, 1e9);
  const look = async () => {
    await source.refresh();
    await run.refresh!();
    await attached.updateMetrics();
    return (await run.rollouts()).units.map(({ mode, step }) => `${mode} ${step}`);
  };
  expect(await look()).toEqual(['train 1']);
  mkdirSync(join(folder, 'validation'));
  writeFileSync(join(folder, 'validation', '0.jsonl'), rollout('v', 1));
  writeFileSync(metrics, row(1, 0.1) + row(2, 0.2));
  expect(await look()).toEqual(['train 1', 'val 0']);
  expect(contentsOf(made).metrics.map(({ step }) => step)).toEqual([1, 2]);

  // A log that is known is read on from where it was read to, also when the adapter has looked again.
  writeFileSync(join(folder, 'validation', '5.jsonl'), rollout('w', 1));
  appendFileSync(metrics, row(3, 0.3));
  expect(await look()).toEqual(['train 1', 'val 0', 'val 5']);
  expect(run.metrics).toHaveLength(1);
  expect(contentsOf(made).metrics.map(({ step }) => step)).toEqual([1, 2, 3]);
  await attached.close();
});

it('a folder in which an adapter then finds several runs, or none, is followed as before', async () => {
  const { folder, dump } = foreign();
  dump(1, [rollout('a', 1)]);
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  const answers = [() => Promise.reject(new UserError('several runs')), () => Promise.resolve(null)];
  const growing = growingRun(source, { id: adapter.id, find: () => answers.shift()!() }, {}, run);
  for (const step of [2, 3]) {
    dump(step, [rollout('b', 1)]);
    await source.refresh();
    await growing.refresh!();
    expect((await growing.rollouts()).units.map(unit => unit.step)).toContain(step);
  }
  expect(answers).toEqual([]);
});

it('a script that writes a file per step is followed, without reading earlier files again', async () => {
  const folder = join(workspace(), 'script');
  mkdirSync(folder);
  const write = (step: number): void =>
    writeFileSync(
      join(folder, `rollouts-${step}.jsonl`),
      `${JSON.stringify({ step, prompt: 'a', completion: 'b', reward: step })}\n`,
    );
  write(1);
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  expect(adapter.id).toBe('json-lines');
  const keys = async () => {
    await source.refresh();
    await run.refresh!();
    return (await run.rollouts()).units.map(({ step, key }) => [step, key]);
  };
  const [first] = await keys();
  write(2);
  const both = await keys();
  expect(both.map(([step]) => step)).toEqual([1, 2]);
  expect(both[0]).toEqual(first);
});

it('rows that a trainer repeats replace the later rows, also if its file was empty in between', async () => {
  const { folder, metrics } = foreign();
  writeFileSync(metrics, row(1, 0.1) + row(2, 0.2) + row(3, 0.3));
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  const made = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const attached = AttachedRun.open(made, source, run, 1e9);
  const steps = async () => {
    await attached.updateMetrics();
    return contentsOf(made).metrics.map(line => [line.step, line['critic/score/mean']]);
  };
  expect(await steps()).toHaveLength(3);
  writeFileSync(metrics, '');
  expect(await steps()).toHaveLength(3);
  appendFileSync(metrics, row(2, 0.25));
  expect(await steps()).toEqual([[1, 0.1], [2, 0.25]]); // prettier-ignore
  appendFileSync(metrics, row(3, 0.35));
  expect(await steps()).toEqual([[1, 0.1], [2, 0.25], [3, 0.35]]); // prettier-ignore
  await attached.close();
});

it('a second process continues: it converts only what is new, and keeps what the trainer has erased', async () => {
  const { folder, metrics, dump } = foreign();
  writeFileSync(metrics, row(1, 0.1) + row(2, 0.2));
  dump(1, [rollout('a', 1)]);
  const first = await attachOnce(workspace(), folder);
  const stamp = readFileSync(first.folder.file('attached.json'), 'utf8');
  writeFileSync(metrics, row(3, 0.3));
  const second = await attachOnce(workspace(), folder, { earlier: first.folder });
  expect(second.metrics.map(line => line['critic/score/mean'])).toEqual([0.1, 0.2, 0.3]);
  expect(readFileSync(first.folder.file('attached.json'), 'utf8')).toBe(stamp);
});

it('a stop takes effect within a step, which is then as before, and within a file of metrics', async () => {
  const { folder, metrics, dump } = foreign();
  writeFileSync(metrics, row(1, 0.1) + row(2, 0.2));
  dump(1, [rollout('a', 1)]);
  dump(2, [rollout('b', 1)]);
  const { folder: made } = await attachOnce(workspace(), folder);
  const names = () => readdirSync(made.path, { recursive: true, encoding: 'utf8' }).sort();
  const before = [names(), readFileSync(made.file('episodes/step-000002.jsonl'), 'utf8')];
  dump(2, ['b', 'c', 'd', 'e'].map(text => rollout(text, 1))); // prettier-ignore
  const source = await SourceFolder.open(folder);
  const { run } = await recognise(source);
  const followed = (own: Partial<typeof run>, stop: AbortController): Promise<boolean> =>
    followRun(
      made,
      source,
      { ...run, ...own },
      {
        ...{ episodeBytes: 1e9, once: true, signal: stop.signal },
        onChange: () => undefined,
      },
    );

  const inStep = new AbortController();
  async function* stopsAtThird(unit: RolloutUnit): ReturnType<RolloutUnit['read']> {
    let read = 0;
    for await (const each of unit.read()) {
      if (++read === 3) inStep.abort();
      yield each;
    }
  }
  const rollouts = async () => ({
    units: (await run.rollouts()).units.map(unit => ({ ...unit, read: () => stopsAtThird(unit) })),
  });
  expect(await followed({ rollouts }, inStep)).toBe(false);
  expect([names(), readFileSync(made.file('episodes/step-000002.jsonl'), 'utf8')]).toEqual(before);
  expect(made.readStatus()?.state).toBe('stopped');

  const inMetrics = new AbortController();
  const [{ name }] = run.metrics;
  const read: MetricSource['read'] = add => {
    add({ step: 3, values: { 'critic/score/mean': 0.3 } });
    inMetrics.abort();
    add({ step: 4, values: { 'critic/score/mean': 0.4 } });
    return Promise.resolve(false);
  };
  expect(await followed({ metrics: [{ name, read }] }, inMetrics)).toBe(false);
  expect(names()).toEqual(before[0]);
  expect(made.readStatus()?.state).toBe('stopped');

  const after = await attachOnce(workspace(), folder, { earlier: made });
  expect(after.episodes['step-000002']).toHaveLength(4);
  expect(after.metrics.map(line => line.step)).toEqual([1, 2]);
});

it('only one process follows a run', async () => {
  const { folder, metrics } = foreign();
  writeFileSync(metrics, row(1, 0.1));
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  const attached = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const stop = new AbortController();
  const options = { episodeBytes: 1e9, once: false, signal: stop.signal, onChange: () => undefined };
  const following = followRun(attached, source, run, options);
  await expect.poll(() => attached.readStatus()?.state).toBe('running');
  await expect(followRun(attached, source, run, options)).rejects.toThrow('already');
  stop.abort();
  await following;
});

it('keeps the newest episodes within the limit of bytes, and reports lines that are no rollouts', async () => {
  const { folder, metrics, dump } = foreign();
  writeFileSync(metrics, row(1, 0.1));
  for (let step = 1; step <= 9; step++) dump(step, [rollout(`prompt ${step}`, 1), 'no JSON\n', '{"input": 1}\n']);
  const all = await attachOnce(workspace(), folder);
  expect(Object.keys(all.episodes)).toHaveLength(9);
  expect(readFileSync(all.folder.file('events.jsonl'), 'utf8')).toContain('18 lines of the rollouts could not be read');
  const bytes = readFileSync(all.folder.file('episodes/step-000009.jsonl')).length;
  const few = await attachOnce(workspace(), folder, { earlier: all.folder, bytes: 2.5 * bytes });
  expect(Object.keys(few.episodes)).toEqual(['step-000007', 'step-000008', 'step-000009']);
});

it('a run whose paths lead elsewhere is not followed there', async () => {
  const { folder, metrics } = foreign();
  writeFileSync(join(workspace(), 'secret.jsonl'), row(1, 0.5));
  symlinkSync(join(workspace(), 'secret.jsonl'), metrics);
  await expect(attachOnce(workspace(), folder)).rejects.toThrow('contains no files of a known trainer');
});
