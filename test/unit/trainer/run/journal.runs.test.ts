// The journal's writes: the content of the disk over time, and the run's final status on a full disk.
import { execFileSync } from 'node:child_process';
import { readdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runFiles } from '../../../../extension/run-data/run-file-names';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import type { RunStatus } from '../../../../extension/run-data/run-status-file';
import { Journal } from '../../../../extension/trainer/run/journal';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { writeCheckpoint } from '../../../../extension/trainer/store/checkpoint-writer';
import { makeFolder, makeFolderSync, StoreRefusal } from '../../../../extension/node/files';
import { mountSmall, readRun, unmount } from '../../../support/terminal';

const initial: RunStatus = {
  state: 'running',
  step: 0,
  total_steps: 3,
  success: null,
  reward: null,
  tokens_per_s: null,
  eta_s: null,
  phase: 'idle',
  updated: '2026-01-01T00:00:00.000Z',
};

const about = {
  ...{
    name: 'pen',
    config_name: 'pen',
    overrides: [],
    config: {},
    config_hash: '',
    seeds: {},
    versions: {},
    hardware: {},
  },
  ...{ model: { path: '', sha256: '', parameters: 0 }, environments: [] },
};

let workspace: string;
beforeEach(() => (workspace = mkdtempSync(join(tmpdir(), 'ragen-journal-'))));
afterEach(() => rmSync(workspace, { recursive: true, force: true }));

async function open() {
  const folder = await RunFolder.create(workspace, about, new Date(0));
  const received: { appended: [string, number][]; events: RunEvent[]; fractions: number[] } = {
    appended: [],
    events: [],
    fractions: [],
  };
  const watchers = {
    status: (_: RunStatus, fraction: number) => void received.fractions.push(fraction),
    appended: (file: string, bytes: number) => void received.appended.push([file, bytes]),
    event: (event: RunEvent) => void received.events.push(event),
  };
  return { folder, received, journal: new Journal(folder, watchers, initial, 100) };
}

test("a client notified of a file's growth finds complete lines up to that offset", async () => {
  const { folder, received, journal } = await open();
  journal.metrics(1, { a: 1, b: NaN });
  journal.metrics(2, { a: 2, c: Infinity });
  const text = readFileSync(folder.file(runFiles.metrics), 'utf8');
  expect(received.appended.map(([, bytes]) => text.slice(0, bytes).split('\n').length - 1)).toEqual([1, 2]);
  const { metrics } = readRun(folder.path);
  expect(metrics.map(({ time: _, wall_s: __, ...line }) => line)).toEqual([
    { step: 1, a: 1 },
    { step: 2, a: 2 },
  ]);
  expect(metrics[0].wall_s).toBeGreaterThanOrEqual(100); // including the seconds of earlier sessions
  await journal.close();
});

test('rapid status changes end with the latest one on disk', async () => {
  const { folder, journal } = await open();
  for (let step = 1; step <= 50; step++) journal.update({ step });
  await journal.sync();
  expect(folder.readStatus()!.step).toBe(50);
  await journal.close();
});

test('progress is reported in steps of one hundredth, and from the start of each phase', async () => {
  const { received, journal } = await open();
  journal.update({ phase: 'rollout' });
  for (let i = 0; i <= 1000; i++) journal.progress(i / 1000);
  journal.update({ phase: 'update' });
  journal.progress(0.5);
  expect(received.fractions.length).toBeGreaterThan(90);
  expect(received.fractions.length).toBeLessThan(110);
  expect(received.fractions.slice(-2)).toEqual([0, 0.5]);
  await journal.close();
});

test('on a full disk, a status makes the sync fail, but the final status is written', async context => {
  const small = join(workspace, '.ragen');
  if (!mountSmall(small, 64)) return context.skip('mounting a small file system is not permitted here');
  try {
    const { folder, journal } = await open();
    journal.update({ step: 1 });
    journal.metrics(1, { a: 1 });
    await journal.sync();
    execFileSync('/bin/sh', ['-c', `cat /dev/zero > "${small}/filler" 2> /dev/null || true`]);
    journal.update({ step: 2 });
    await expect(journal.sync()).rejects.toThrow(/\(ENOSPC\): the disk is full: free space$/);
    expect(folder.readStatus()!.step).toBe(1);
    for (let i = 0; i < 5000; i++) journal.metrics(2, { a: 2 }); // exceeds the free part of the file's last block
    await expect(journal.settled()).rejects.toThrow('ENOSPC');
    await journal.fail('store: the disk is full');
    await journal.close();
    expect(folder.readStatus()).toMatchObject({ state: 'failed', step: 2, error: 'store: the disk is full' });
    expect(readRun(folder.path).metrics[0]).toMatchObject({ step: 1, a: 1 });
    expect(RunFolder.list(workspace).map(({ id }) => id)).toEqual([folder.id]);
  } finally {
    unmount(small);
  }
});

test('writes and folder creations that a read-only file system refused can be retried', async context => {
  const small = join(workspace, 'read-only');
  if (!mountSmall(small, 64)) return context.skip('mounting a small file system is not permitted here');
  const remount = (as: 'ro' | 'rw') => execFileSync('mount', ['-o', `remount,${as}`, small]);
  const state = { step: 1, offsets: {}, streams: {}, seed_counter: 0, state: {} };
  const jobs = [
    () => makeFolder(join(small, 'a/b')),
    async () => makeFolderSync(join(small, 'c/d')),
    () => writeCheckpoint(small, state, { 'model.safetensors': new Float32Array(1) }, 1),
  ];
  try {
    remount('ro');
    for (const job of jobs) {
      const refusal = await job().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(refusal).toBeInstanceOf(StoreRefusal);
      expect((refusal as Error).message).toMatch(/\(EROFS\): the file system is read-only: mount it for writing again/);
    }
    remount('rw');
    for (const job of jobs) await job();
    expect(['a/b', 'c/d'].map(name => readdirSync(join(small, name)))).toEqual([[], []]);
    expect(readdirSync(join(small, 'checkpoints/step-000001')).sort()).toEqual([
      'checkpoint.json',
      'model.safetensors',
    ]);
  } finally {
    unmount(small);
  }
});
