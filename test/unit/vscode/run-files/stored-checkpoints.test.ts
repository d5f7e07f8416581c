// The list of a run's checkpoints: step, validation, time and size; unreadable checkpoints are listed as such.
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeCheckpoints } from '../../../../extension/vscode/run-files/stored-checkpoints';
import { formatBytes, formatParent } from '../../../../extension/vscode/runs/run-format';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();

function write(name: string, text: string): string {
  const path = join(folder(), 'checkpoints', name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'checkpoint.json'), text);
  return join(path, 'checkpoint.json');
}

test('checkpoints are described by their checkpoint.json', async () => {
  const file = { bytes: 600_000, sha256: '' };
  const newest = write('step-000020', JSON.stringify({ files: { a: file, b: file }, state: { validated: 0.61 } }));
  write('step-000010', JSON.stringify({ files: { a: file }, state: { validated: null } }));
  write('step-000005', 'not JSON');
  const names = ['step-000020', 'step-000010', 'step-000005', 'step-000001'];
  const entries = await describeCheckpoints(folder(), names);
  expect(entries.map(({ step, validation, bytes }) => [step, validation, bytes])).toEqual([
    [20, 0.61, 1_200_000],
    [10, null, 600_000],
    [5, null, null],
    [1, null, null],
  ]);
  expect(entries[0].saved).toBe(statSync(newest).mtimeMs);
  expect(entries[3].saved).toBeNull();
});

test('sizes and parents are formatted', () => {
  expect([640, 1000, 1_234_567, 999_600_000].map(formatBytes)).toEqual(['640 B', '1.00 kB', '1.23 MB', '1.00 GB']);
  const parent = { run: 'r1', step: 10 };
  expect(formatParent({ parent }, () => 'quickstart')).toBe('quickstart, step 10');
  expect(formatParent({ parent }, () => undefined)).toBe('r1, step 10');
  expect(formatParent({}, () => 'quickstart')).toBeUndefined();
});
