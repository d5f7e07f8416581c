// A checkpoint interrupted at any file operation leaves the old or the new state, and the next write succeeds.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { newestValid } from '../../../../extension/trainer/store/newest-checkpoint';
import { readFloats } from '../../../../extension/trainer/store/checkpoint';
import { writeCheckpoint } from '../../../../extension/trainer/store/checkpoint-writer';
import { failingFiles } from '../../../support/failing-files';
import type { Failure } from '../../../support/failing-files';

const write = (folder: string, step: number, value: number, failure: Failure): Promise<string> =>
  writeCheckpoint(
    folder,
    { step, offsets: { 'metrics.jsonl': value }, streams: { s: value }, seed_counter: value, state: value },
    { 'actor.bin': Float32Array.of(value), 'adam.bin': Float32Array.of(value, value) },
    1,
    failingFiles(failure),
  );
const none = (): Failure => ({ calls: 0, at: Infinity, after: 'works' });

async function stored(folder: string): Promise<{ step: number; value: number } | null> {
  const { checkpoint } = await newestValid(folder);
  if (checkpoint === null) return null;
  const values = [
    checkpoint.manifest.seed_counter,
    (await readFloats(checkpoint, 'actor.bin'))[0],
    (await readFloats(checkpoint, 'adam.bin'))[1],
  ];
  expect(new Set(values).size).toBe(1);
  return { step: checkpoint.manifest.step, value: values[0] };
}

test.each<[string, number, Failure['after']]>([
  ['the disk is full for a moment', 2, 'works'],
  ['the process dies', 2, 'dead'],
  ['the disk is full while a checkpoint is written again', 1, 'works'],
  ['the process dies while a checkpoint is written again', 1, 'dead'],
])('%s: the old or the new checkpoint remains', async (_, step, after) => {
  const outcomes = new Set<string>();
  for (let at = 1; ; at++) {
    const folder = mkdtempSync(join(tmpdir(), 'ragen-checkpoint-'));
    await write(folder, 1, 10, none());
    const failure: Failure = { calls: 0, at, after };
    const error: unknown = await write(folder, step, 20, failure).catch((thrown: unknown) => thrown);
    const now = await stored(folder);
    expect([
      { step: 1, value: 10 },
      { step, value: 20 },
    ]).toContainEqual(now);
    if (typeof error === 'string') expect(now).toEqual({ step, value: 20 });
    else {
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/ENOSPC/);
    }
    outcomes.add(
      `${typeof error === 'string' ? 'reported done' : 'reported failed'}, ${now?.value === 20 ? 'new' : 'old'}`,
    );
    await write(folder, 3, 30, none());
    expect(await stored(folder)).toEqual({ step: 3, value: 30 });
    expect(readdirSync(join(folder, 'checkpoints'))).toEqual(['step-000003']);
    rmSync(folder, { recursive: true });
    if (failure.calls < at) break;
  }
  // Interruptions occurred both before and after the commit point.
  expect(outcomes).toContain('reported failed, old');
  expect(outcomes).toContain('reported done, new');
});

test('the first checkpoint of a run, interrupted anywhere, is complete or absent', async () => {
  for (let at = 1; ; at++) {
    const folder = mkdtempSync(join(tmpdir(), 'ragen-checkpoint-'));
    const failure: Failure = { calls: 0, at, after: 'dead' };
    await write(folder, 1, 10, failure).catch(() => undefined);
    expect([null, { step: 1, value: 10 }]).toContainEqual(await stored(folder));
    rmSync(folder, { recursive: true });
    if (failure.calls < at) break;
  }
});
