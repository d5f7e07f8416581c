// Trainers that restart or rotate their logs while they are followed: of a repeated step, the later values and rollouts
// count, and no row of a rotated log is lost.
import { appendFileSync, copyFileSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { EventLog } from '../../../extension/trainer/store/event-log';
import { AttachedRun } from '../../../extension/foreign-runs/attached-run';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { attachOnce, contentsOf } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const { signal } = new AbortController();
const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written

const score = 'critic/score/mean';
const row = (step: number, value: number): string => `${JSON.stringify({ step, data: { [score]: value } })}\n`;
const rows = (from: number, to: number, plus = 0): string =>
  Array.from({ length: to - from + 1 }, (_, i) => row(from + i, (from + i) / 100 + plus)).join('');

const lines = (step: number, rewards: readonly number[]): string =>
  rewards.map(reward => `${JSON.stringify({ step, prompt: 'Where?', completion: `at ${reward}`, reward })}\n`).join('');

/** Opens what lies at `path` as a follower does; `look` returns what the run folder contains after one more look. */
async function followed(path: string) {
  const source = await SourceFolder.open(path);
  const { adapter, run } = await recognise(source);
  const folder = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const attached = AttachedRun.open(folder, source, run, 1e9);
  return {
    close: () => attached.close(),
    async look() {
      await source.refresh();
      await run.refresh!();
      await attached.updateMetrics();
      for (let more = true; more;) {
        const { units, more: isLeft = false } = await run.rollouts();
        await attached.episodes.convert(units, { until: () => false, signal });
        more = isLeft;
      }
      const { metrics, episodes } = contentsOf(folder);
      return {
        scores: metrics.map(line => [line.step, line[score]]),
        rewards: Object.values(episodes).map(all => all.map(({ step, reward }) => [step, reward])),
      };
    },
  };
}

function emptyFolder(name: string): string {
  const folder = join(workspace(), name);
  mkdirSync(folder);
  return folder;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  utimesSync(file, old, old);
}

function append(file: string, text: string): void {
  appendFileSync(file, text);
  utimesSync(file, old, old);
}

it('a restart appends steps that the log has already: their later values count', async () => {
  const folder = emptyFolder('run');
  const log = join(folder, 'log.jsonl');
  write(log, rows(1, 4));
  const { look, close } = await followed(folder);
  expect((await look()).scores).toHaveLength(4);
  append(log, row(3, 0.93));
  expect((await look()).scores).toEqual([[1, 0.01], [2, 0.02], [3, 0.93], [4, 0.04]]); // prettier-ignore
  append(log, row(4, 0.94) + row(5, 0.95));
  const after = [[1, 0.01], [2, 0.02], [3, 0.93], [4, 0.94], [5, 0.95]]; // prettier-ignore
  expect((await look()).scores).toEqual(after);
  await close();
  const { metrics } = await attachOnce(workspace(), folder);
  expect(metrics.map(line => [line.step, line[score]])).toEqual(after);
});

it('a restart appends rollouts of steps that the file has already: they replace the earlier ones', async () => {
  const folder = emptyFolder('run');
  const file = join(folder, 'rollouts.jsonl');
  write(file, lines(1, [1, 2]) + lines(2, [3, 4]) + lines(3, [5, 6]) + lines(4, [7]));
  const { look, close } = await followed(folder);
  expect((await look()).rewards.map(all => all.length)).toEqual([2, 2, 2, 1]);
  append(file, lines(3, [50]));
  expect((await look()).rewards).toEqual([[[1, 1], [1, 2]], [[2, 3], [2, 4]], [[3, 50]], [[4, 7]]]); // prettier-ignore
  append(file, lines(3, [60]) + lines(4, [70, 80]) + lines(5, [90]));
  const after = [[[1, 1], [1, 2]], [[2, 3], [2, 4]], [[3, 50], [3, 60]], [[4, 70], [4, 80]], [[5, 90]]]; // prettier-ignore
  expect((await look()).rewards).toEqual(after);
  // An earlier checkpoint: the attempt before has no lines of step 2, but of steps 3 to 5.
  append(file, lines(2, [31, 41]) + lines(3, [51, 61]) + lines(4, [71, 81]) + lines(5, [91]) + lines(6, [0]));
  const again = [[[1, 1], [1, 2]], [[2, 31], [2, 41]], [[3, 51], [3, 61]], [[4, 71], [4, 81]], [[5, 91]], [[6, 0]]]; // prettier-ignore
  expect((await look()).rewards).toEqual(again);
  await close();
  const { episodes } = await attachOnce(workspace(), folder);
  expect(Object.values(episodes).map(all => all.map(({ step, reward }) => [step, reward]))).toEqual(again);
});

it('several processes write one file: lines of neighbouring steps are mixed, and all of them count', async () => {
  const folder = emptyFolder('run');
  const file = join(folder, 'rollouts.jsonl');
  const mixed = [1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 5].map((step, i) => lines(step, [i]));
  write(file, mixed.join(''));
  const { look, close } = await followed(folder);
  expect((await look()).rewards.map(all => all.length)).toEqual([2, 3, 3, 3, 3]);
  await close();
});

it('one line that arrives after the next step has begun does not replace its step', async () => {
  const folder = emptyFolder('run');
  const file = join(folder, 'rollouts.jsonl');
  write(file, lines(1, [1, 2, 3, 4]) + lines(2, [1, 2, 3]) + lines(3, [1]) + lines(2, [4]) + lines(3, [2, 3, 4]));
  append(file, lines(4, [1]));
  const { look, close } = await followed(folder);
  expect((await look()).rewards.map(all => all.length)).toEqual([4, 4, 4, 1]);
  await close();
});

it('a trainer that removes the rollouts of repeated steps and writes them again does not double them', async () => {
  const folder = emptyFolder('run');
  const dump = (step: number, values: readonly number[]) =>
    write(
      join(folder, 'rollouts', `${step}.jsonl`),
      values.map(value => `${JSON.stringify({ input: 'user\na\n', output: 'b', score: value })}\n`).join(''),
    );
  write(join(folder, 'log.jsonl'), rows(1, 2));
  dump(1, [1, 2]);
  dump(2, [3, 4]);
  const { look, close } = await followed(folder);
  await look();
  rmSync(join(folder, 'rollouts', '2.jsonl'));
  expect((await look()).rewards).toEqual([[[1, 1], [1, 2]], [[2, 3], [2, 4]]]); // prettier-ignore
  dump(2, [30, 40]);
  expect((await look()).rewards).toEqual([[[1, 1], [1, 2]], [[2, 30], [2, 40]]]); // prettier-ignore
  await close();
});

it('a log that is renamed is read to its end, then the new file under its name', async () => {
  const folder = emptyFolder('run');
  const log = join(folder, 'metrics.jsonl');
  write(log, rows(1, 2));
  const { look, close } = await followed(folder);
  expect((await look()).scores).toHaveLength(2);
  append(log, rows(3, 4)); // not read before the file is renamed
  renameSync(log, `${log}.1`);
  expect((await look()).scores.map(([step]) => step)).toEqual([1, 2, 3, 4]);
  write(log, rows(5, 5));
  expect((await look()).scores.map(([step]) => step)).toEqual([1, 2, 3, 4, 5]);

  // Twice between two looks.
  append(log, rows(6, 6));
  for (const [from, to] of [['.1', '.2'], ['', '.1']]) renameSync(log + from, log + to); // prettier-ignore
  write(log, rows(7, 8));
  for (const [from, to] of [['.2', '.3'], ['.1', '.2'], ['', '.1']]) renameSync(log + from, log + to); // prettier-ignore
  write(log, rows(9, 9));
  const all = Array.from({ length: 9 }, (_, i) => [i + 1, (i + 1) / 100]);
  expect((await look()).scores).toEqual(all);

  // A copy, after which the log is truncated.
  append(log, rows(10, 10));
  copyFileSync(log, `${log}.0`);
  for (const i of [3, 2, 1, 0]) renameSync(`${log}.${i}`, `${log}.${i + 1}`);
  write(log, rows(11, 11));
  expect((await look()).scores).toEqual([...all, [10, 0.1], [11, 0.11]]);
  append(log, row(11, 0.5));
  expect((await look()).scores.at(-1)).toEqual([11, 0.5]);
  await close();
});

it('a run that was rotated before it is opened has all its rows; a file is opened with its earlier parts', async () => {
  const folder = emptyFolder('run');
  const log = join(folder, 'metrics.jsonl');
  write(`${log}.2`, rows(1, 3));
  write(`${log}.1`, rows(3, 5, 0.5));
  write(log, rows(6, 6));
  for (const path of [folder, log]) {
    const { metrics } = await attachOnce(workspace(), path);
    expect(metrics.map(line => [line.step, line[score]])).toEqual(
      [[1, 0.01], [2, 0.02], [3, 0.53], [4, 0.54], [5, 0.55], [6, 0.06]], // prettier-ignore
    );
  }
});

it('rollouts of a rotated file count, those of a step that was cut by the rotation, and repeated ones once', async () => {
  const folder = emptyFolder('run');
  const file = join(folder, 'rollouts.jsonl');
  write(file, lines(1, [1, 2]) + lines(2, [3]));
  const { look, close } = await followed(folder);
  expect((await look()).rewards.map(all => all.length)).toEqual([2, 1]);
  append(file, lines(2, [4]));
  renameSync(file, `${file}.1`);
  write(file, lines(2, [5]) + lines(3, [6, 7]));
  expect((await look()).rewards).toEqual([[[1, 1], [1, 2]], [[2, 3], [2, 4], [2, 5]], [[3, 6], [3, 7]]]); // prettier-ignore

  // The restarted trainer renames the log, and repeats step 2.
  for (const [from, to] of [['.1', '.2'], ['', '.1']]) renameSync(file + from, file + to); // prettier-ignore
  write(file, '');
  expect((await look()).rewards.map(all => all.length)).toEqual([2, 3, 2]);
  write(file, lines(2, [30, 40]) + lines(3, [60, 70]));
  const after = [[[1, 1], [1, 2]], [[2, 30], [2, 40]], [[3, 60], [3, 70]]]; // prettier-ignore
  expect((await look()).rewards).toEqual(after);
  await close();
});

it('a restart begins a second event file in the folder: the later values of repeated steps count', async () => {
  const folder = emptyFolder('tensorboard_log');
  const events = (name: string) => new EventLog(join(folder, name), null, 1, { fsync: 'explicit' });
  const first = events('events.out.tfevents.1795372868.vm.100.0');
  for (const step of [1, 2, 3]) first.scalars(step, 100 + step, { [score]: step / 100 });
  const { look, close } = await followed(folder);
  expect((await look()).scores).toEqual([[1, 0.01], [2, 0.02], [3, 0.03]].map(rounded)); // prettier-ignore
  first.close();
  const second = events('events.out.tfevents.1795379999.vm.200.0');
  second.scalars(2, 202, { [score]: 0.5 });
  expect((await look()).scores).toEqual([[1, 0.01], [2, 0.5], [3, 0.03]].map(rounded)); // prettier-ignore
  second.scalars(3, 203, { [score]: 0.75 });
  second.scalars(4, 204, { [score]: 0.25 });
  second.close();
  const after = [[1, 0.01], [2, 0.5], [3, 0.75], [4, 0.25]].map(rounded); // prettier-ignore
  expect((await look()).scores).toEqual(after);
  await close();
  const { metrics } = await attachOnce(workspace(), folder);
  expect(metrics.map(line => [line.step, line[score]])).toEqual(after);
});

/** Event files have numbers of 4 bytes. */
const rounded = ([step, value]: number[]): number[] => [step, Math.fround(value)];

it('TRL begins a folder of event files at each start: they are read in the order of their creation', async () => {
  const folder = emptyFolder('output');
  const state = { log_history: [{ step: 1, reward: 0 }], global_step: 1, max_steps: 9 };
  write(join(folder, 'checkpoint-1', 'trainer_state.json'), JSON.stringify(state));
  // By name, the folder of December precedes that of November.
  for (const [name, seconds, value] of [
    ['Nov30_23-00-00_vm', 1796079600, 0.25],
    ['Dec01_01-00-00_vm', 1796086800, 0.5],
  ] as const) {
    // prettier-ignore
    mkdirSync(join(folder, 'runs', name), { recursive: true });
    const file = join(folder, 'runs', name, `events.out.tfevents.${seconds}.vm.1.0`);
    const log = new EventLog(file, null, seconds, { fsync: 'explicit' });
    log.scalars(2, seconds, { 'train/reward': value });
    log.close();
  }
  const { adapter, metrics } = await attachOnce(workspace(), folder);
  expect(adapter).toBe('trl');
  expect(metrics.map(line => [line.step, line[score]])).toEqual([[1, 0], [2, 0.5]]); // prettier-ignore
});
