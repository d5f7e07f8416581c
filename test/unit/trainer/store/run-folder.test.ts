// The run folder: ids, the manifest, the status, and the return to a checkpoint.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { keptEnvironmentSchema } from '../../../../extension/run-data/environment-snapshot';
import type { Manifest } from '../../../../extension/run-data/run-manifest';
import type { RunStatus } from '../../../../extension/run-data/run-status-file';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { temporaryFolder } from '../../../support/temporary-folder';
import { keepEnvironment } from '../../../../extension/trainer/store/environment-store';
import { rollBack } from '../../../../extension/trainer/store/rollback';

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

test('ids contain time, name and hash; ids of the same second differ', async () => {
  const runs = await Promise.all(Array.from({ length: 5 }, () => RunFolder.create(folder(), about, created)));
  for (const run of runs) expect(run.id).toMatch(/^20260704-090503-gro-e-co-first-try-[0-9a-f]{4}$/);
  expect(new Set(runs.map(run => run.id)).size).toBe(5);
  const again = await RunFolder.create(join(folder(), 'elsewhere'), about, created);
  expect(again.id).toBe(runs.map(run => run.id).find(id => id === again.id));
});

test('the manifest is read back, and the folder has its subfolders', async () => {
  const run = await RunFolder.create(folder(), about, created);
  expect(RunFolder.open(run.path).manifest).toEqual({
    schema: 1,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    id: run.id,
    created: '2026-07-04T09:05:03.000Z',
    ...about,
  });
  expect(readdirSync(run.path).sort()).toEqual([
    'checkpoints',
    'environments',
    'episodes',
    'manifest.json',
    'signature.json',
  ]);
  expect(RunFolder.find(folder(), run.id).path).toBe(run.path);
  expect(() => RunFolder.find(folder(), '../x')).toThrow(/there is no run \.\.\/x in .*: see ragen runs for their ids/);
});

test('runs are listed newest first; other folders are skipped', async () => {
  const older = await RunFolder.create(folder(), about, created);
  const newer = await RunFolder.create(folder(), { ...about, name: '???' }, new Date(created.getTime() + 1000));
  mkdirSync(join(folder(), '.ragen/runs/empty'));
  mkdirSync(join(folder(), '.ragen/runs/damaged'));
  writeFileSync(join(folder(), '.ragen/runs/damaged/manifest.json'), '{');
  expect(RunFolder.list(folder()).map(run => run.id)).toEqual([newer.id, older.id]);
  expect(newer.id).toContain('-run-');
  expect(RunFolder.list(join(folder(), 'nowhere'))).toEqual([]);
  expect(() => RunFolder.open(join(folder(), '.ragen/runs/empty'))).toThrow(
    /has no manifest\.json, so it is not a run/,
  );
  expect(() => RunFolder.open(join(folder(), '.ragen/runs/damaged'))).toThrow(/manifest\.json is damaged/);
});

test('the status is replaced atomically', async () => {
  const run = await RunFolder.create(folder(), about, created);
  expect(run.readStatus()).toBeNull();
  await run.writeStatus(status);
  await run.writeStatus({ ...status, step: 2 });
  expect(run.readStatus()).toEqual({ ...status, step: 2 });
  expect(readdirSync(run.path).filter(name => name.startsWith('.'))).toEqual([]);
});

test('a workspace that cannot store runs is reported with the cause', async () => {
  writeFileSync(join(folder(), 'file'), '');
  await expect(RunFolder.create(join(folder(), 'file'), about, created)).rejects.toThrow(
    /store: cannot make .* \(ENOTDIR\): a part of the path is not a folder/,
  );
});

test('the source of an environment is stored once per version', async () => {
  const run = await RunFolder.create(folder(), about, created);
  const bundleOf = (lake: string): string => {
    const sources = ['../shared/words.ts', '../node_modules/left/index.js', 'lake.ts'];
    const map = JSON.stringify({ sources, sourcesContent: ['words', 'left', lake] });
    return `code//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}\n`;
  };
  const bundle = bundleOf('lake');
  const source = resolve('/work/space/envs/lake.ts');
  const loaded = {
    tag: 'Lake',
    name: 'lake',
    source,
    version: 'abc',
    bundle,
    files: [],
    config: {},
    instruction: '',
    legend: {},
    has_solver: false,
  };
  await keepEnvironment(run, loaded);
  await keepEnvironment(run, { ...loaded, name: 'second' });
  const kept = (name: string) => readFileSync(join(run.path, 'environments/abc', name), 'utf8');
  expect(kept('environment.js')).toBe(bundle);
  expect(kept('sources/envs/lake.ts')).toBe('lake');
  expect(kept('sources/shared/words.ts')).toBe('words');
  await keepEnvironment(run, { ...loaded, bundle: bundleOf('lake // a comment') });
  expect(kept('sources/envs/lake.ts')).toBe('lake // a comment');
  expect(keptEnvironmentSchema.parse(JSON.parse(kept('version.json')))).toMatchObject({
    version: 'abc',
    name: 'lake',
    root: resolve('/work/space'),
    entry: 'envs/lake.ts',
    sources: ['envs/lake.ts', 'shared/words.ts'],
  });
  await expect(keepEnvironment(run, { ...loaded, version: '../x' })).rejects.toThrow(/is not an environment version/);
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
  const scores = run.scores();
  for (const step of [1, 2, 10]) scores.append({ step, tags: {} });
  scores.close();
  const halves = [
    '.tmp-status.json-1',
    'diagnostics/.tmp-groups-000001.jsonl-2',
    'environments/abc/.tmp-environment.js-3',
  ];
  mkdirSync(run.file('environments/abc'));
  for (const name of [...halves, 'labels.json.4.tmp']) writeFileSync(run.file(name), 'half');
  const manifest = readFileSync(run.file('manifest.json'), 'utf8');
  for (let i = 0; i < 2; i++) await rollBack(run, 1, { 'metrics.jsonl': offset, 'events.jsonl': 0 });
  expect(halves.filter(name => existsSync(run.file(name)))).toEqual([]);
  expect(readFileSync(run.file('labels.json.4.tmp'), 'utf8')).toBe('half'); // the editor may rename this file next  expect(readFileSync(run.file('metrics.jsonl'), 'utf8')).toBe('{"step":1}\n');
  expect(readFileSync(run.file('scores.jsonl'), 'utf8')).toBe('{"step":1,"tags":{}}\n');
  expect(readdirSync(run.file('episodes')).sort()).toEqual(['step-000001.jsonl', 'val-000001.jsonl']);
  expect(readdirSync(run.file('diagnostics'))).toEqual(['groups-000001.jsonl']);
  await expect(rollBack(run, 1, { 'metrics.jsonl': offset + 1 })).rejects.toThrow(/has no line that ends at byte/);
  expect(readFileSync(run.file('manifest.json'), 'utf8')).toBe(manifest);
});
