// The run folder: ids, the manifest, the status, and going back to a checkpoint.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Manifest, RunStatus } from '../../../extension/protocol/run-folder';
import { RunFolder } from '../../../extension/trainer/store/run-folder';
import { temporaryFolder } from './folder';

const folder = temporaryFolder();
const created = new Date(Date.UTC(2026, 6, 4, 9, 5, 3));
const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
  name: 'Größe & Co: first try!',
  config_name: 'quickstart',
  overrides: [],
  config: { seed: { train: 1 } },
  config_hash: 'ab'.repeat(32),
  seeds: { train: 1 },
  versions: { node: 'v20' },
  hardware: { cores: 2 },
  model: { path: 'm', sha256: 'x', parameters: 3 },
  environments: [],
};
const status: RunStatus = {
  state: 'running',
  step: 1,
  total_steps: 2,
  success: null,
  reward: 0.5,
  tokens_per_s: null,
  eta_s: null,
  phase: 'rollout',
  updated: created.toISOString(),
};

test('ids carry time, name and hash; those of one second differ', async () => {
  const runs = await Promise.all(Array.from({ length: 5 }, () => RunFolder.create(folder(), about, created)));
  for (const run of runs) expect(run.id).toMatch(/^20260704-090503-gro-e-co-first-try-[0-9a-f]{4}$/);
  expect(new Set(runs.map(run => run.id)).size).toBe(5);
  const again = await RunFolder.create(join(folder(), 'elsewhere'), about, created);
  expect(again.id).toBe(runs.map(run => run.id).find(id => id === again.id));
});

test('the manifest is read back, and the folder has its parts', async () => {
  const run = await RunFolder.create(folder(), about, created);
  expect(RunFolder.open(run.path).manifest).toEqual({
    schema: 1,
    id: run.id,
    created: '2026-07-04T09:05:03.000Z',
    ...about,
  });
  expect(readdirSync(run.path).sort()).toEqual(['checkpoints', 'environments', 'episodes', 'manifest.json']);
  expect(RunFolder.find(folder(), run.id).path).toBe(run.path);
  expect(() => RunFolder.find(folder(), '../x')).toThrow(/there is no run \.\.\/x in .*: list the runs for their ids/);
});

test('runs are listed newest first; what is no run is passed over', async () => {
  const older = await RunFolder.create(folder(), about, created);
  const newer = await RunFolder.create(folder(), { ...about, name: '???' }, new Date(created.getTime() + 1000));
  mkdirSync(join(folder(), '.ragen/runs/empty'));
  mkdirSync(join(folder(), '.ragen/runs/damaged'));
  writeFileSync(join(folder(), '.ragen/runs/damaged/manifest.json'), '{');
  expect(RunFolder.list(folder()).map(run => run.id)).toEqual([newer.id, older.id]);
  expect(newer.id).toContain('-run-');
  expect(RunFolder.list(join(folder(), 'nowhere'))).toEqual([]);
  expect(() => RunFolder.open(join(folder(), '.ragen/runs/empty'))).toThrow(/has no manifest\.json, so it is no run/);
  expect(() => RunFolder.open(join(folder(), '.ragen/runs/damaged'))).toThrow(/manifest\.json is damaged/);
});

test('the status is replaced whole', async () => {
  const run = await RunFolder.create(folder(), about, created);
  expect(run.readStatus()).toBeNull();
  await run.writeStatus(status);
  await run.writeStatus({ ...status, step: 2 });
  expect(run.readStatus()).toEqual({ ...status, step: 2 });
  expect(readdirSync(run.path).filter(name => name.startsWith('.'))).toEqual([]);
});

test('a workspace that cannot hold runs is explained', async () => {
  writeFileSync(join(folder(), 'file'), '');
  await expect(RunFolder.create(join(folder(), 'file'), about, created)).rejects.toThrow(
    /store: cannot make a run folder in .* \(ENOTDIR\)/,
  );
});

test('the source of an environment is kept once a version', async () => {
  const run = await RunFolder.create(folder(), about, created);
  await run.keepEnvironment('abc', 'first');
  await run.keepEnvironment('abc', 'second');
  expect(readFileSync(join(run.path, 'environments/abc/environment.js'), 'utf8')).toBe('first');
  await expect(run.keepEnvironment('../x', '')).rejects.toThrow(/is no environment version/);
});

test('going back to a step drops later lines and episodes', async () => {
  const run = await RunFolder.create(folder(), about, created);
  const metrics = run.metrics();
  const offset = metrics.append({ step: 1 });
  metrics.append({ step: 2 });
  metrics.close();
  for (const [mode, step] of [
    ['train', 1],
    ['val', 1],
    ['train', 2],
    ['val', 2],
  ] as const) {
    const log = run.episodes(mode, step);
    log.append({ id: 'x' });
    log.close();
  }
  for (const step of [1, 2]) {
    const log = run.groups(step);
    log.append({ step });
    log.close();
  }
  for (let i = 0; i < 2; i++) await run.rollBack(1, { 'metrics.jsonl': offset, 'events.jsonl': 0 });
  expect(readFileSync(run.file('metrics.jsonl'), 'utf8')).toBe('{"step":1}\n');
  expect(readdirSync(run.file('episodes')).sort()).toEqual(['step-000001.jsonl', 'val-000001.jsonl']);
  expect(readdirSync(run.file('diagnostics'))).toEqual(['groups-000001.jsonl']);
  await expect(run.rollBack(1, { 'metrics.jsonl': offset + 1 })).rejects.toThrow(/has no line ending at byte/);
  expect(existsSync(run.file('manifest.json'))).toBe(true);
});
