// The sweeps of a workspace folder: started ones by their files, and sweep files with their first comment.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startedSweeps, sweepName, sweepSourcesIn } from '../../../../extension/vscode/sweeps/sweep-list';

let workspace: string;
beforeEach(() => (workspace = mkdtempSync(join(tmpdir(), 'ragen-sweeps-'))));
afterEach(() => rmSync(workspace, { recursive: true }));

const write = (path: string, text: string): void => {
  mkdirSync(join(workspace, path, '..'), { recursive: true });
  writeFileSync(join(workspace, path), text);
};
const started = (id: string, updated: string): void =>
  write(
    `.ragen/sweeps/${id}/sweep.json`,
    JSON.stringify({
      ...{ schema: 1, id, file: `/w/${id}.yaml`, overrides: [], jobs: 1, retries: 1, updated },
      ...{ runner: null, halving: null, points: [], members: [] },
    }),
  );

test('started sweeps are listed by their last change; damaged and unplanned ones are left out', async () => {
  started('older', '2026-01-01');
  started('newer', '2026-01-02');
  write('.ragen/sweeps/damaged/sweep.json', '{"schema":1');
  write('.ragen/sweeps/compared/comparison.json', '{}');
  expect((await startedSweeps(workspace)).map(({ content }) => content.id)).toEqual(['newer', 'older']);
  expect(await startedSweeps(join(workspace, 'nowhere'))).toEqual([]);
});

test('sweep files have their name and their first comment', async () => {
  write('config/sweeps/b.yml', 'config_name: x\n');
  write('config/sweeps/a.yaml', '# Which rate? \n# more\nconfig_name: x\n');
  write('config/sweeps/notes.md', '# Notes\n');
  const found = await sweepSourcesIn(join(workspace, 'config/sweeps'));
  expect(found.map(({ name, about }) => [name, about])).toEqual([
    ['a', 'Which rate?'],
    ['b', ''],
  ]);
  expect(sweepName(found[1].file)).toBe('b');
});
