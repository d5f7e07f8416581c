import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { changeLabels, notesFile } from '../../../../extension/vscode/run-files/run-labels';
import { RunReader, type ReaderDependencies } from '../../../../extension/vscode/run-files/run-reader';
import { runPhase, type RunPhase } from '../../../../extension/vscode/runs/run-format';
import { hostOfJob } from '../../../../extension/run-data/job-record';
import { leaseOldMs, leaseStaleMs } from '../../../../extension/run-data/lease-file';
import { currentPidScope, isAlive, startOf } from '../../../../extension/node/process-identity';
import type { Lease } from '../../../../extension/run-data/lease-file';
import { makeRun, touchLease } from '../../../e2e/fixtures/make-run.mjs';

let workspace: string;
let folder: string;
let now: number;
beforeEach(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-reader-'));
  folder = makeRun(workspace, {
    id: 'lake',
    name: 'lake',
    state: 'running',
    step: 12,
    total: 40,
    seed: 3,
    groups: 2,
    members: 3,
  });
  now = Date.now();
});
afterEach(() => rmSync(workspace, { recursive: true }));

const reader = (processes: Partial<ReaderDependencies> = {}) =>
  new RunReader(folder, {
    ...{ now: () => now, monotonic: () => now, isAlive: () => true, startOf: () => '100' },
    ...{ pidScope: { host: 'here', boot: 'b', pid_namespace: '1' }, ...processes },
  });

test('a folder without a manifest is not a run', async () => {
  unlinkSync(join(folder, 'manifest.json'));
  const run = reader();
  expect(await run.refresh()).toBe(false);
  expect(run.summary).toBeUndefined();
});

test('a run of an earlier version is live while its lease is fresh, then silent, and at last interrupted', async () => {
  const run = reader();
  touchLease(folder);
  now = statSync(join(folder, 'lease')).mtimeMs + leaseStaleMs - 1;
  expect(await run.refresh()).toBe(true);
  expect(run.summary).toMatchObject({
    id: 'lake',
    name: 'lake',
    live: true,
    status: { state: 'running', step: 12, total_steps: 40 },
  });
  expect(runPhase(run.summary!)).toBe('running');
  expect(run.summary!.silent_s).toBeUndefined();
  now += 1;
  expect(run.summary).toMatchObject({ live: true, silent_s: 5 });
  now += leaseOldMs - leaseStaleMs;
  expect(runPhase(run.summary!)).toBe('interrupted');
  expect(run.summary!.silent_s).toBeUndefined();
});

test('the process of a lease decides: stopped it does not respond, continued it is live, killed it is dead at once', async () => {
  const trainer = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
  await once(trainer, 'spawn');
  try {
    const lease = { pid: trainer.pid!, process_start: startOf(trainer.pid!), ...currentPidScope };
    const run = reader({ isAlive, startOf, pidScope: currentPidScope });
    const shown = async () => {
      await run.refresh();
      return [runPhase(run.summary!), run.summary!.silent_s];
    };
    leaveLease(0, lease);
    expect(await shown()).toEqual(['running', undefined]);
    trainer.kill('SIGSTOP');
    now += 3 * leaseOldMs;
    expect(await shown()).toEqual(['running', 90]);
    trainer.kill('SIGCONT');
    leaveLease(0, lease);
    expect(await shown()).toEqual(['running', undefined]);
    leaveLease(0, { ...lease, process_start: '1' }); // the system has reused the pid
    expect(await shown()).toEqual(['interrupted', undefined]);
    leaveLease(0, lease);
    expect(await shown()).toEqual(['running', undefined]);
    const ended = once(trainer, 'exit');
    trainer.kill('SIGKILL');
    await ended;
    expect(await shown()).toEqual(['interrupted', undefined]);
  } finally {
    trainer.kill('SIGKILL');
  }
});

test('a lease that cannot be read for a moment does not end a run whose process lives', async () => {
  leaveLease(60_000);
  const run = reader();
  await run.refresh();
  expect(run.summary).toMatchObject({ live: true, silent_s: 60 });
  const text = readFileSync(join(folder, 'lease'), 'utf8');
  leaveLease(60_000);
  writeFileSync(join(folder, 'lease'), text.slice(0, 20)); // being written
  utimesSync(join(folder, 'lease'), (now - 60_000) / 1000, (now - 60_000) / 1000);
  await run.refresh();
  expect(run.summary).toMatchObject({ live: true, silent_s: 60 });
  unlinkSync(join(folder, 'lease'));
  await run.refresh();
  expect(run.summary!.live).toBe(false);
});

test.each([
  ['the same process', '100', 'running'],
  ['another process of the same pid', '200', 'interrupted'],
  ['a process whose start time is unknown', undefined, 'interrupted'],
])('where start times need a program, it is run for a silent trainer only: %s', async (_, start, phase) => {
  let reads = 0;
  const run = reader({ startOf: () => undefined, readStart: () => Promise.resolve((reads++, start)) });
  leaveLease(0);
  await run.refresh();
  expect([runPhase(run.summary!), reads]).toEqual(['running', 0]);
  now += 2 * leaseOldMs;
  await run.refresh();
  await run.refresh();
  expect([runPhase(run.summary!), reads]).toEqual([phase, 1]);
});

/** Writes a lease of this version, last touched `ago` milliseconds before now. */
function leaveLease(ago: number, more: Partial<Lease> = {}): void {
  const file = join(folder, 'lease');
  const lease = { pid: 7, started: new Date(now).toISOString(), endpoint: '/s', token: 't', process_start: '100' };
  writeFileSync(file, JSON.stringify({ ...lease, host: 'here', boot: 'b', pid_namespace: '1', ...more }));
  utimesSync(file, (now - ago) / 1000, (now - ago) / 1000);
}

test.each<[string, number, Partial<ReaderDependencies>, RunPhase]>([
  ['a living process, whatever the age', 3_600_000, {}, 'running'],
  ['a living process, whatever the clock', -3_600_000, {}, 'running'],
  ['a dead process, at once', 0, { isAlive: () => false }, 'interrupted'],
  ['a dead process, also in the future', -3_600_000, { isAlive: () => false }, 'interrupted'],
  ['another process of the same pid', 0, { startOf: () => '200' }, 'interrupted'],
])('on this machine the process decides: %s', async (_, ago, processes, standing) => {
  leaveLease(ago);
  const run = reader(processes);
  await run.refresh();
  expect(runPhase(run.summary!)).toBe(standing);
  expect(run.summary!.otherHost).toBeUndefined();
});

test.each<[string, Partial<Lease>]>([
  ['of another machine', { host: 'there', boot: 'c' }],
  ['of another container', { host: 'there', pid_namespace: '2' }],
])('a lease %s is judged only by changes of its timestamp, whatever the clock offset', async (_, more) => {
  const dead = { isAlive: () => false };
  leaveLease(60_000, more);
  const run = reader(dead);
  await run.refresh();
  expect(runPhase(run.summary!)).toBe('interrupted');
  expect(run.summary!.otherHost).toBeUndefined(); // no trainer runs
  leaveLease(59_000, more); // touched, by a clock that is a minute behind
  await run.refresh();
  expect(runPhase(run.summary!)).toBe('running');
  expect(run.summary!.otherHost).toBe('there');
  now += leaseOldMs;
  await run.refresh();
  expect(runPhase(run.summary!)).toBe('interrupted');
  leaveLease(-60_000, more); // touched, by a clock that is ahead
  await run.refresh();
  expect(runPhase(run.summary!)).toBe('running');
  now += leaseOldMs;
  expect(runPhase(run.summary!)).toBe('interrupted');
});

test('a run that has just started may lack status and lease', async () => {
  unlinkSync(join(folder, 'status.json'));
  const run = reader();
  await run.refresh();
  const created = Date.parse(run.summary!.created);
  now = created + 59_000;
  expect(runPhase(run.summary!)).toBe('running');
  now = created + 61_000;
  expect(runPhase(run.summary!)).toBe('interrupted');
});

test('a torn or invalid status keeps the last valid one', async () => {
  const run = reader();
  await run.refresh();
  writeFileSync(join(folder, 'status.json'), '{"state":"runn');
  await run.refresh();
  expect(run.summary!.status.step).toBe(12);
});

test('a status from the trainer link counts unless the file has a newer one', async () => {
  const run = reader();
  await run.refresh();
  const { status } = run.summary!;
  run.report({ ...status, step: 13, updated: new Date(Date.parse(status.updated) + 1).toISOString() });
  expect(run.summary!.status.step).toBe(13);
  run.report({ ...status, step: 5, updated: new Date(Date.parse(status.updated) - 1).toISOString() });
  expect(run.summary!.status.step).toBe(13);
});

test('metrics grow with the files, and begin a new epoch when a resume truncates them', async () => {
  const run = reader();
  const first = await run.numbers();
  expect(first.metrics.map(line => line.step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(first.events.map(event => event.kind)).toEqual(['state', 'checkpoint']);
  expect(first.epoch).toBe(0);

  const metrics = join(folder, 'metrics.jsonl');
  appendFileSync(metrics, '{"step":13,"time":"t","wall_s":1}\n');
  expect((await run.numbers()).metrics).toHaveLength(13);

  truncateSync(metrics, statSync(metrics).size - '{"step":13,"time":"t","wall_s":1}\n'.length);
  appendFileSync(metrics, '{"step":13,"time":"later","wall_s":2}\n');
  const again = await run.numbers();
  expect(again.epoch).toBe(1);
  expect(again.metrics).toHaveLength(13);
  expect(again.metrics.at(-1)).toEqual({ step: 13, time: 'later', wall_s: 2 });
});

test('concurrent reads of the metrics read the file once', async () => {
  const run = reader();
  const [first, second] = await Promise.all([run.numbers(), run.numbers()]);
  expect(first).toBe(second);
  expect(first.metrics).toHaveLength(12);
});

test('lists the steps with episodes, one step’s rows, and opens one episode', async () => {
  const run = reader();
  writeFileSync(join(folder, 'episodes', 'val-000010.jsonl'), '');
  writeFileSync(join(folder, 'episodes', 'notes.txt'), '');
  expect(await run.episodeSteps()).toEqual([
    { step: 10, mode: 'train' },
    { step: 10, mode: 'val' },
    { step: 12, mode: 'train' },
  ]);
  const at = { step: 12, mode: 'train' } as const;
  const rows = await run.episodeRows(at);
  expect(rows.map(row => row.id)).toEqual(
    [0, 1].flatMap(group => [0, 1, 2].map(member => `train-000012-g00${group}-m0${member}`)),
  );
  const episode = await run.episode(at, rows[4].id);
  expect(episode).toMatchObject({ id: rows[4].id, group_id: 1, member: 1, score: rows[4].score });
  expect(rows[4].tokens).toBe(episode!.tokens.mask.filter(sampled => sampled === 1).length);
  expect(rows[4].turns).toBe(episode!.turns.length);
  expect(await run.episode(at, 'train-000012-g009-m00')).toBeNull();
  expect(await run.episodeRows({ step: 11, mode: 'train' })).toEqual([]);
});

test('rows appended while a step is written appear, torn ones later', async () => {
  const run = reader();
  const at = { step: 12, mode: 'train' } as const;
  const file = join(folder, 'episodes', 'step-000012.jsonl');
  const before = await run.episodeRows(at);
  const line = JSON.stringify({ ...(await run.episode(at, before[0].id))!, id: 'train-000012-g007-m00' });
  appendFileSync(file, line.slice(0, 100));
  utimesSync(file, new Date(), new Date(Date.now() + 1000));
  expect(await run.episodeRows(at)).toHaveLength(before.length);
  appendFileSync(file, `${line.slice(100)}\n`);
  expect((await run.episodeRows(at)).at(-1)!.id).toBe('train-000012-g007-m00');
  expect((await run.episode(at, 'train-000012-g007-m00'))!.tag).toBe('CoordFrozenLake');
});

test('checkpoints are listed newest first', async () => {
  folder = makeRun(workspace, { id: 'long', name: 'long', state: 'stopped', step: 30, seed: 4 });
  expect(await reader().checkpoints()).toEqual(['step-000030', 'step-000020', 'step-000010']);
});

test('user labels override the manifest, take effect at once, and can be removed', async () => {
  const run = reader();
  await run.refresh();
  expect(run.summary).not.toHaveProperty('tags');
  await changeLabels(folder, () => ({ name: 'small lakes', tags: ['lr', 'paper'], archived: true, colour: 'sky' }));
  writeFileSync(await notesFile(folder, 'lake'), '# lake\n\n  Entropy fell *too* fast.\nMore.\n');
  await run.refresh();
  expect(run.summary).toMatchObject({
    name: 'small lakes',
    tags: ['lr', 'paper'],
    archived: true,
    colour: 'sky',
    notes: 'Entropy fell *too* fast.',
  });
  expect(readFileSync(await notesFile(folder, 'other'), 'utf8')).toContain('# lake'); // notes are never overwritten
  await changeLabels(folder, () => ({ name: undefined, tags: [], archived: undefined }));
  await run.refresh();
  expect(run.summary?.name).toBe('lake');
  expect(run.summary).not.toHaveProperty('tags');
  expect(run.summary).not.toHaveProperty('archived');
  expect(run.manifest?.name).toBe('lake');
  expect(readdirSync(folder).filter(name => name.endsWith('.tmp'))).toEqual([]);
});

test('concurrent label changes by several windows are all kept; a window that died during a change blocks nobody', async () => {
  const add = (tag: string) => changeLabels(folder, ({ tags = [] }) => ({ tags: [...tags, tag] }));
  const tags = Array.from({ length: 8 }, (_, i) => `tag-${i}`);
  await Promise.all([...tags.map(add), changeLabels(folder, () => ({ name: 'of another window' }))]);
  const run = reader();
  await run.refresh();
  expect([...(run.summary?.tags ?? [])].sort()).toEqual(tags);
  expect(run.summary?.name).toBe('of another window');
  mkdirSync(join(folder, 'labels.json.lock'));
  await add('late');
  await run.refresh();
  expect(run.summary?.tags).toContain('late');
  expect(readdirSync(folder).filter(name => /\.(tmp|lock)$/.test(name))).toEqual([]);
});

test('damaged labels are ignored and can be changed', async () => {
  writeFileSync(join(folder, 'labels.json'), '{"schema": 1, "tags": "x"');
  const run = reader();
  await run.refresh();
  expect(run.summary?.name).toBe('lake');
  await changeLabels(folder, () => ({ tags: ['a'] }));
  await run.refresh();
  expect(run.summary?.tags).toEqual(['a']);
  await expect(changeLabels(join(folder, 'gone'), () => ({ tags: ['a'] }))).rejects.toThrow(
    /labels\.json cannot be written/,
  );
});

const job = { schema: 1, address: 'http://head:8265', id: 'ragen-lake-1', submitted: '2026-01-01T00:00:00Z' };
const queued = {
  ...{ state: 'starting', phase: 'queued', step: 0, total_steps: 40, success: null, reward: null },
  ...{ tokens_per_s: null, eta_s: null, updated: '2026-01-01T00:00:00Z' },
};

test('a run whose job is queued counts as running for any time, and shows where', async () => {
  rmSync(join(folder, 'lease'), { force: true });
  writeFileSync(join(folder, 'status.json'), JSON.stringify(queued));
  writeFileSync(join(folder, 'job.json'), JSON.stringify(job));
  const run = reader();
  await run.refresh();
  expect(run.summary).toMatchObject({ live: true, job: { address: job.address, id: job.id } });
  expect(runPhase(run.summary!)).toBe('running');
  expect(hostOfJob(run.summary!.job!)).toBe('head');

  writeFileSync(join(folder, 'job.json'), JSON.stringify({ ...job, host: 'node-7' }));
  leaveLease(0);
  await run.refresh();
  expect(hostOfJob(run.summary!.job!)).toBe('node-7');
  rmSync(join(folder, 'lease'));
  rmSync(join(folder, 'job.json')); // resumed on this machine, and interrupted
  await run.refresh();
  expect(run.summary).toMatchObject({ live: false });
  expect(run.summary?.job).toBeUndefined();
});

test('a damaged job record is ignored', async () => {
  writeFileSync(join(folder, 'job.json'), '{"schema":1,"address":3}');
  const run = reader();
  expect(await run.refresh()).toBe(true);
  expect(run.summary?.job).toBeUndefined();
  expect(run.summary?.problem).toBeUndefined();
});
