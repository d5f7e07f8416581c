// Files that name a version of their format: an unknown version is refused, or its file left out, with the known versions.
// The files of the other trainers name none (docs/FOREIGN-RUNS.md).
import { cpSync, mkdirSync, readFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writer } from 'protobufjs/minimal';
import { expect, it } from 'vitest';
import { maskedCrc } from '../../../extension/common/crc32c';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written

/** Copies a sample, and changes the texts of the files whose names end so. */
function changed(sample: string, ending: string, change: (text: string) => string): string {
  const folder = join(workspace(), 'changed');
  cpSync(join(samples, sample), folder, { recursive: true });
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith(ending)) {
      writeFileSync(join(folder, name), change(readFileSync(join(folder, name), 'utf8')));
      utimesSync(join(folder, name), old, old);
    }
  return folder;
}

it.each([
  ['prime-rl', 'prime-rl', 'traces.jsonl', /"version":1,"id"/g, '"version":2,"id"', 'version 2'],
  [
    'verifiers',
    'verifiers/outputs/frozenlake--qwen3-0.6b--null--d4e5f6',
    'traces.jsonl',
    /"version":1,"id"/g,
    '"version":"1.1","id"',
    'version "1.1"',
  ],
  [
    'tinker-cookbook',
    'tinker-cookbook',
    '_rollout_summaries.jsonl',
    /"schema_version": ?1\b/g,
    '"schema_version":7',
    'schema_version 7',
  ],
])('%s: the events name the unknown and the known versions', async (trainer, sample, ending, from, to, named) => {
  const { adapter, episodes, folder } = await attachOnce(
    workspace(),
    changed(sample, ending, text => text.replace(from, to)),
  );
  expect([adapter, episodes]).toEqual([trainer, {}]);
  const writer = trainer === 'prime-rl' ? 'verifiers' : trainer; // prime-rl stores verifiers' traces
  expect(readFileSync(folder.file('events.jsonl'), 'utf8').replaceAll('\\"', '"')).toContain(
    `the files of ${writer} have ${named}, but the known versions are 1: update RAGEN Workbench`,
  );
});

it('TensorBoard: what is left out names the unknown and the known version', async () => {
  const payload = Writer.create()
    .uint32((3 << 3) | 2)
    .string('brain.Event:3')
    .finish();
  const record = Buffer.alloc(payload.length + 16);
  record.writeUInt32LE(payload.length, 0);
  record.writeUInt32LE(maskedCrc(record.subarray(0, 8)), 8);
  record.set(payload, 12);
  record.writeUInt32LE(maskedCrc(payload), 12 + payload.length);
  const folder = join(workspace(), 'events');
  mkdirSync(folder);
  writeFileSync(join(folder, 'events.out.tfevents.1796000000.vm'), record);
  const { folder: run } = await attachOnce(workspace(), folder); // other files of the run would still be read
  const { left_out } = statusSchema.parse(JSON.parse(readFileSync(run.file('status.json'), 'utf8')));
  expect(left_out).toEqual([
    expect.stringMatching(
      /tfevents\.1796000000\.vm has version "brain\.Event:3" .* but the known version is brain\.Event:2: update RAGEN/,
    ),
  ]);
});

it('prime-rl: folders of later versions are named as such', async () => {
  const folder = join(workspace(), 'later');
  mkdirSync(join(folder, 'configs'), { recursive: true });
  mkdirSync(join(folder, 'traces/step_1/train'), { recursive: true });
  writeFileSync(join(folder, 'configs/rl.json'), '{"max_steps": 3}');
  writeFileSync(join(folder, 'traces/step_1/train/traces.jsonl'), '{"id": "a", "traces": []}\n');
  const { adapter, run } = await recognise(await SourceFolder.open(folder));
  expect(adapter.id).toBe('prime-rl');
  expect(run.missing.join()).toContain('the known versions are those of 2026-04 to 2026-08');
});
