// One changed bit in a manifest, a checkpoint.json or a log is detected. The message names the file and the difference.
import { mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { configHash } from '../../../../extension/trainer/config/config-hash';
import { newestCheckpoint, refuseForeign } from '../../../../extension/trainer/store/newest-checkpoint';
import { openCheckpoint } from '../../../../extension/trainer/store/checkpoint';
import { writeCheckpoint } from '../../../../extension/trainer/store/checkpoint-writer';
import { LineLog } from '../../../../extension/trainer/store/line-log';
import { LogLedger, checkLogs } from '../../../../extension/trainer/store/log-ledger';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const config = { seed: { train: 1 }, actor_rollout_ref: { actor: { optim: { lr: 1e-3 } } } };
const about = {
  ...{ name: 'lake', config_name: 'lake', overrides: [], config, config_hash: configHash(config), seeds: { train: 1 } },
  ...{ versions: { node: 'v20' }, hardware: {}, model: { path: 'm', sha256: '', parameters: 1 }, environments: [] },
};
const change = (file: string, from: string, to: string): void => {
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
};

let run: RunFolder;
beforeEach(async () => {
  run = await RunFolder.create(folder(), about, new Date(0));
});

const save = (step: number): Promise<string> => {
  const { id, manifest } = run.verifySeal();
  const state = { step, offsets: { 'metrics.jsonl': 7 }, streams: {}, seed_counter: step, state: { kl_coef: 0.5 } };
  return writeCheckpoint(run.path, { ...state, run: { id, manifest } }, { weights: Float32Array.of(step) }, 9);
};

test.each([
  ['the learning rate', '0.001', '0.003', /config whose hash/],
  ['the seed of the configuration', '"train": 1', '"train": 3', /config whose hash/],
  ['a version', '"v20"', '"v21"', /does not match its checksum/],
  ['the model', '"parameters": 1', '"parameters": 3', /does not match its checksum/],
])('a changed manifest is detected: %s', (_, from, to, reason) => {
  change(join(run.path, 'manifest.json'), from, to);
  expect(() => run.verifySeal()).toThrow(reason);
  expect(() => run.verifySeal()).toThrow(/manifest\.json .*: restore it from a copy/);
});

test('the seal stays valid after a change of name or tags, or a move of the folder', () => {
  const { manifest } = run.verifySeal();
  change(join(run.path, 'manifest.json'), '"name": "lake"', '"name": "sea", "tags": ["wet"]');
  const moved = join(folder(), 'moved');
  renameSync(run.path, moved);
  expect(RunFolder.open(moved).verifySeal()).toMatchObject({ manifest, sealed: true });
});

test('a manifest of an earlier version has no seal, but its configuration is checked', () => {
  const file = join(run.path, 'manifest.json');
  const { sha256: _, ...old } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  writeFileSync(file, JSON.stringify(old));
  expect(run.verifySeal().sealed).toBe(false);
  change(file, '0.001', '0.003');
  expect(() => run.verifySeal()).toThrow(/config whose hash/);
});

test.each([
  ['the step', '"step": 2', '"step": 3'],
  ['a counter', '"seed_counter": 2', '"seed_counter": 6'],
  ['a coefficient', '"kl_coef": 0.5', '"kl_coef": 0.7'],
  ['an offset', '"metrics.jsonl": 7', '"metrics.jsonl": 5'],
  ['its own form', '"schema": 2', '"schema": 1'],
  ['the name of its checksum', '"sha256": "', '"sha257": "'],
])('a changed checkpoint.json is detected: %s', async (_, from, to) => {
  await save(1);
  const path = await save(2);
  // The last occurrence is the manifest's own checksum.
  const file = join(path, 'checkpoint.json');
  const text = readFileSync(file, 'utf8');
  const at = text.lastIndexOf(from);
  expect(at).toBeGreaterThan(0);
  writeFileSync(file, text.slice(0, at) + to + text.slice(at + from.length));
  await expect(openCheckpoint(path)).rejects.toThrow(/checkpoint\.json does not (match|have the expected format)/);
  const newest = newestCheckpoint(run.path, run.verifySeal(), name => `ragen resume x --checkpoint ${name}`);
  await expect(newest).rejects.toThrow(
    /step-000002.checkpoint\.json .*the newest intact checkpoint is step-000001; ragen resume x --checkpoint step-000001/,
  );
});

test('a checkpoint in the folder of another step, or of another run, is refused', async () => {
  const path = await save(2);
  renameSync(path, join(path, '../step-000004'));
  await expect(openCheckpoint(join(path, '../step-000004'))).rejects.toThrow(
    /is for step 2, which does not match its folder/,
  );
  renameSync(join(path, '../step-000004'), path);
  const other = { id: 'other', manifest: 'ab' };
  const checkpoint = await openCheckpoint(path);
  expect(() => refuseForeign(checkpoint, run.verifySeal())).not.toThrow();
  expect(() => refuseForeign(checkpoint, other)).toThrow(/is a checkpoint of run .* and not of other: start a new run/);
});

/** Writes the logs of two saved steps. Returns the log position after the second step. */
function logs() {
  mkdirSync(join(run.path, 'episodes'), { recursive: true });
  const metrics = new LineLog(join(run.path, 'metrics.jsonl'), { fsync: 'explicit' });
  const ledger = new LogLedger(join(run.path, 'checksums.jsonl'));
  for (const step of [1, 2]) {
    metrics.append({ step, a: 10 });
    metrics.append({ step, b: 20 });
    ledger.note(metrics.takePiece('metrics.jsonl'));
    const episodes = new LineLog(join(run.path, `episodes/step-00000${step}.jsonl`), { fsync: 'explicit' });
    episodes.append({ step });
    ledger.note(episodes.takePiece(`episodes/step-00000${step}.jsonl`));
    episodes.close();
    ledger.flush();
  }
  const { mark } = ledger;
  metrics.append({ step: 3 });
  ledger.note(metrics.takePiece('metrics.jsonl'));
  ledger.flush();
  metrics.close();
  ledger.close();
  return mark;
}

test('unchanged logs pass the check, up to a checkpoint and to the end', async () => {
  const mark = logs();
  expect((await checkLogs(run.path, mark)).damages).toEqual([]);
  const { damages, covered } = await checkLogs(run.path, null);
  expect(damages).toEqual([]);
  expect(covered.get('metrics.jsonl')).toBe(readFileSync(join(run.path, 'metrics.jsonl')).length);
});

test.each<[string, (file: (name: string) => string) => void, { file: string; how: RegExp }]>([
  [
    'a flipped bit',
    file => change(file('metrics.jsonl'), '{"step":2,"b":20}', '{"step":2,"b":30}'),
    { file: 'metrics.jsonl', how: /differs from what the trainer wrote \(lines 3 to 4, bytes 36 to 72\)/ },
  ],
  [
    'a cut file',
    file => truncateSync(file('metrics.jsonl'), 40),
    { file: 'metrics.jsonl', how: /ends at byte 40, but 72 bytes were written/ },
  ],
  [
    'an older file of episodes',
    file => change(file('episodes/step-000001.jsonl'), '1', '3'),
    { file: 'episodes/step-000001.jsonl', how: /lines 1 to 1, bytes 0 to 11/ },
  ],
  ['a file that is gone', file => rmSync(file('metrics.jsonl')), { file: 'metrics.jsonl', how: /is gone/ }],
  [
    'the ledger',
    file => change(file('checksums.jsonl'), '"to":36', '"to":37'),
    { file: 'checksums.jsonl', how: /its own checksum in line 1/ },
  ],
  [
    'the end of the ledger',
    file => truncateSync(file('checksums.jsonl'), 10),
    { file: 'checksums.jsonl', how: /does not match the checkpoint/ },
  ],
])('damaged logs are found: %s', async (_, damage, expected) => {
  const mark = logs();
  damage(name => join(run.path, name));
  const { damages } = await checkLogs(run.path, mark);
  expect(damages).toHaveLength(1);
  expect(damages[0].file).toBe(expected.file);
  expect(damages[0].how).toMatch(expected.how);
});

test('bytes after the checkpoint may differ: a resume truncates them', async () => {
  const mark = logs();
  change(join(run.path, 'metrics.jsonl'), '{"step":3}', '{"step":4}');
  expect((await checkLogs(run.path, mark)).damages).toEqual([]);
});

test('a log that is rewritten, or truncated and continued, is checked in its current form', async () => {
  const file = join(run.path, 'scores.jsonl');
  const ledger = new LogLedger(join(run.path, 'checksums.jsonl'));
  const log = new LineLog(file, { fsync: 'explicit' });
  log.append({ step: 1 });
  const end = log.append({ step: 2 });
  log.append({ step: 3 });
  log.truncateTo(end); // the ledger does not contain these lines yet
  ledger.note(log.takePiece('scores.jsonl'));
  log.truncateTo(0);
  log.append({ step: 1, again: true });
  ledger.note(log.takePiece('scores.jsonl'));
  ledger.flush();
  log.close();
  ledger.close();
  expect(await checkLogs(run.path, null)).toEqual({ damages: [], covered: new Map([['scores.jsonl', 24]]) });
});
