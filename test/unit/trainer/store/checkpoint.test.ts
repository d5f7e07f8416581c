// Checkpoints: written state is read back, damaged checkpoints are skipped and reported by name, old checkpoints are
// deleted.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { newestValid } from '../../../../extension/trainer/store/newest-checkpoint';
import { openCheckpoint, readBlob, readFloats } from '../../../../extension/trainer/store/checkpoint';
import { writeCheckpoint } from '../../../../extension/trainer/store/checkpoint-writer';
import type { CheckpointState } from '../../../../extension/trainer/store/checkpoint';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const state = (step: number): CheckpointState => ({
  step,
  offsets: { 'metrics.jsonl': 10 * step, 'events.jsonl': 3 },
  streams: { sampling: [1, 2, 3, 4], filter: '00ff' },
  seed_counter: 8 * step,
  state: { kept: null, ema: { a: 0.1 } },
});
const blobs = (step: number): Record<string, Uint8Array | Float32Array> => ({
  'actor.bin': Float32Array.of(step, -0.5, Math.fround(1e-30)),
  'notes.txt': new TextEncoder().encode('✓'),
});
const write = (step: number, keep = 2): Promise<string> => writeCheckpoint(folder(), state(step), blobs(step), keep);
const names = (): string[] => readdirSync(join(folder(), 'checkpoints')).sort();

test('state and blobs are read back bit by bit', async () => {
  const path = await write(100);
  expect(path).toBe(join(folder(), 'checkpoints/step-000100'));
  const { checkpoint, broken } = await newestValid(folder());
  expect(broken).toEqual([]);
  if (checkpoint === null) throw new Error('no checkpoint');
  expect(checkpoint.manifest).toMatchObject(state(100));
  expect(await readFloats(checkpoint, 'actor.bin')).toEqual(blobs(100)['actor.bin']);
  expect(await readBlob(await openCheckpoint(path), 'notes.txt')).toEqual(blobs(100)['notes.txt']);
  await expect(readBlob(checkpoint, 'critic.bin')).rejects.toThrow(
    /has no file critic\.bin: resume from another checkpoint/,
  );
  await expect(readFloats({ ...checkpoint }, 'notes.txt')).rejects.toThrow(/has 3 bytes, which is not a multiple of 4/);
});

test('a view of a larger array is written as that view', async () => {
  const whole = Float32Array.of(1, 2, 3, 4);
  await writeCheckpoint(folder(), state(1), { a: whole.subarray(1, 3) }, 1);
  const { checkpoint } = await newestValid(folder());
  expect(checkpoint && (await readFloats(checkpoint, 'a'))).toEqual(Float32Array.of(2, 3));
});

test('the newest checkpoints are kept, always including the new one; checkpoints of later, abandoned steps are deleted', async () => {
  for (const step of [1, 2, 3]) await write(step);
  expect(names()).toEqual(['step-000002', 'step-000003']);
  await write(2, 1);
  expect(names()).toEqual(['step-000002']);
  await write(5, 0);
  expect(names()).toEqual(['step-000005']);
});

test('steps beyond six digits sort by number', async () => {
  await write(999_999);
  await write(1_000_000);
  expect((await newestValid(folder())).checkpoint?.manifest.step).toBe(1_000_000);
});

test.each<[string, (path: string) => void, RegExp]>([
  [
    'a flipped byte',
    path => writeFileSync(join(path, 'actor.bin'), Buffer.alloc(12)),
    /actor\.bin does not match its checksum: resume from another checkpoint/,
  ],
  ['a file cut short', path => truncateSync(join(path, 'actor.bin'), 5), /actor\.bin has 5 bytes instead of 12/],
  ['a file grown', path => appendFileSync(join(path, 'notes.txt'), 'x'), /notes\.txt has 4 bytes instead of 3/],
  ['a file gone', path => rmSync(join(path, 'notes.txt')), /notes\.txt is gone: resume from another checkpoint/],
  ['no manifest', path => rmSync(join(path, 'checkpoint.json')), /checkpoint\.json is gone: resume from another/],
  ['half a manifest', path => truncateSync(join(path, 'checkpoint.json'), 20), /checkpoint\.json is not JSON/],
  [
    'another manifest',
    path => writeFileSync(join(path, 'checkpoint.json'), '{"schema":3}'),
    /does not have the expected format \(schema/,
  ],
  [
    'a path in the manifest',
    path =>
      writeFileSync(
        join(path, 'checkpoint.json'),
        readFileSync(join(path, 'checkpoint.json'), 'utf8').replace('notes.txt', '../x'),
      ),
    /does not have the expected format/,
  ],
])('%s: the previous checkpoint is used and the damaged one named', async (_, damage, reason) => {
  await write(1);
  const path = await write(2);
  damage(path);
  const { checkpoint, broken } = await newestValid(folder());
  expect(checkpoint?.manifest.step).toBe(1);
  expect(broken).toEqual([{ folder: path, reason: expect.stringMatching(reason) }]);
});

test('damage after opening is detected on reading', async () => {
  const checkpoint = await openCheckpoint(await write(1));
  writeFileSync(join(checkpoint.folder, 'actor.bin'), Buffer.alloc(12, 1));
  await expect(readFloats(checkpoint, 'actor.bin')).rejects.toThrow(/does not match its checksum/);
  truncateSync(join(checkpoint.folder, 'actor.bin'), 3);
  await expect(readFloats(checkpoint, 'actor.bin')).rejects.toThrow(/is cut short/);
});

test('files left by a crash are used if there is no other checkpoint, and removed by the next write', async () => {
  const path = await write(7);
  const parent = join(folder(), 'checkpoints');
  renameSync(path, join(parent, '.old-step-000007'));
  mkdirSync(join(parent, '.tmp-step-000008-00'));
  expect((await newestValid(folder())).checkpoint?.manifest.step).toBe(7);
  await write(8);
  expect(names()).toEqual(['step-000007', 'step-000008']);
});

test('an empty run has no checkpoint; file names are validated', async () => {
  expect(await newestValid(folder())).toEqual({ checkpoint: null, broken: [] });
  for (const name of ['../x', '.hidden', 'checkpoint.json', 'a/b'])
    await expect(writeCheckpoint(folder(), state(1), { [name]: new Uint8Array() }, 1)).rejects.toThrow(UserError);
  expect(existsSync(join(folder(), 'checkpoints')) ? names() : []).toEqual([]);
});
