// A run is identified by its folder: nothing in its manifest, lease or links leads to another run or out of the folder.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exportRun, partsOf } from '../../../../extension/vscode/run-files/run-export';
import { changeLabels, notesFile } from '../../../../extension/vscode/run-files/run-labels';
import { RunReader } from '../../../../extension/vscode/run-files/run-reader';
import { isRunId } from '../../../../extension/run-data/run-file-names';
import { makeRun, touchLease } from '../../../e2e/fixtures/make-run.mjs';

let workspace: string;
let folder: string;
beforeEach(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-identity-'));
  folder = makeRun(workspace, { id: 'lake', name: 'lake', state: 'running', step: 4, total: 9, groups: 1, members: 1 });
});
afterEach(() => rmSync(workspace, { recursive: true }));

const named = (name: string): string => join(folder, '..', name);
const read = async (path: string): Promise<RunReader> => {
  const reader = new RunReader(path);
  await reader.refresh();
  return reader;
};
/** Replaces the id in the run's manifest. */
function withId(path: string, id: string): void {
  const file = join(path, 'manifest.json');
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), id }));
}

describe('the id of a run', () => {
  test.each(['../../../escaped', '/etc', 'lake/../other', '', '-rf', 'other'])(
    'is its folder’s name, not %j',
    async id => {
      withId(folder, id);
      const reader = await read(folder);
      expect([reader.summary?.id, reader.manifest?.id]).toEqual(['lake', 'lake']);
      const into = join(workspace, 'out');
      await exportRun(reader, await partsOf(reader), join(into, reader.summary!.id));
      expect(readdirSync(into)).toEqual(['lake']);
      expect(existsSync(join(workspace, '../escaped'))).toBe(false);
    },
  );

  test('is a different one in a copied folder', async () => {
    const copy = named('lake copy (2)');
    cpSync(folder, copy, { recursive: true });
    expect((await read(copy)).summary).toMatchObject({ id: 'lake copy (2)', name: 'lake', folder: copy });
  });

  test.each(['run', '20260101-120000-lake-ab12', 'Läufe', 'a.b', 'lake copy (2)', '测试', 'x'.repeat(255)])(
    '%j is valid',
    name => {
      expect(isRunId(name)).toBe(true);
    },
  );

  test.each([
    '',
    '.',
    '..',
    '.hidden',
    '-rf',
    'a/b',
    'a\\b',
    'C:',
    'a\nb',
    'a\u001b[2J',
    'a\u202eb',
    'a ',
    'a.',
    'x'.repeat(256),
  ])('%j is invalid', name => expect(isRunId(name)).toBe(false));

  test.runIf(process.platform !== 'win32')('a folder whose name is invalid holds no run', async () => {
    const strange = named('..\\lake');
    cpSync(folder, strange, { recursive: true });
    expect((await read(strange)).summary).toBeUndefined();
  });
});

describe('a copied lease', () => {
  const lease = (path: string, own: object) => {
    const text = {
      pid: process.pid,
      started: new Date().toISOString(),
      endpoint: join(folder, 'trainer.sock'),
      token: 't',
    };
    writeFileSync(join(path, 'lease'), JSON.stringify({ ...text, ...own }));
  };
  const identity = (path: string) => ({
    path: realpathSync(path),
    inode: String(statSync(path, { bigint: true }).ino),
  });

  test('does not make the copy live, and connects to no trainer', async () => {
    const copy = named('copy');
    cpSync(folder, copy, { recursive: true });
    for (const path of [folder, copy]) lease(path, { folder: identity(folder) });
    const [original, copied] = await Promise.all([read(folder), read(copy)]);
    expect(original.summary).toMatchObject({ id: 'lake', live: true });
    expect(await original.lease()).toMatchObject({ token: 't' });
    expect(copied.summary).toMatchObject({ id: 'copy', live: false });
    expect(await copied.lease()).toBeNull();
  });

  test('connects to none in a copied workspace either, and a workspace under another path has the same run', async () => {
    const elsewhere = join(workspace, 'backup', 'lake');
    cpSync(folder, elsewhere, { recursive: true });
    lease(elsewhere, { folder: identity(folder) });
    expect((await read(elsewhere)).summary?.live).toBe(false);
    lease(folder, { folder: { ...identity(folder), path: '/as/a/container/has/it/lake' } });
    expect((await read(folder)).summary?.live).toBe(true);
  });

  test('of an earlier version, without a folder name, is accepted', async () => {
    lease(folder, {});
    expect((await read(folder)).summary?.live).toBe(true);
    touchLease(folder); // being written, or of another format
    expect((await read(folder)).summary?.live).toBe(true);
  });
});

describe.runIf(process.platform !== 'win32')('a link in a run folder', () => {
  let secret: string;
  beforeEach(() => {
    secret = join(workspace, 'secret');
    mkdirSync(secret);
    for (const name of ['tfevents.1', 'step-000009.jsonl']) writeFileSync(join(secret, name), 'secret');
  });
  const out = () => join(workspace, 'out', 'lake');
  /** All bytes of the export. */
  const exported = () =>
    readdirSync(out(), { recursive: true, withFileTypes: true })
      .map(entry =>
        entry.isFile()
          ? readFileSync(join(entry.parentPath, entry.name), 'utf8')
          : entry.isSymbolicLink()
            ? 'a link'
            : '',
      )
      .join('\n');

  test('among TensorBoard’s files is omitted from an export', async () => {
    mkdirSync(join(folder, 'tensorboard'));
    writeFileSync(join(folder, 'tensorboard', 'own.tfevents'), 'own');
    symlinkSync(join(secret, 'tfevents.1'), join(folder, 'tensorboard', 'a.tfevents'));
    symlinkSync(secret, join(folder, 'tensorboard', 'b'));
    await exportRun(await read(folder), ['tensorboard'], out());
    expect(readdirSync(join(out(), 'tensorboard'))).toEqual(['own.tfevents']);
    expect(exported()).toBe('\nown');
  });

  test("in place of TensorBoard's folder is not part of the run", async () => {
    symlinkSync(secret, join(folder, 'tensorboard'));
    const reader = await read(folder);
    expect(await partsOf(reader)).not.toContain('tensorboard');
    await exportRun(reader, ['tensorboard'], out());
    expect(exported()).toBe('');
  });

  test.each([
    ['an episodes file', 'episodes', 'episodes/step-000009.jsonl', 'step-000009.jsonl'],
    ['the episodes folder', 'episodes', 'episodes', ''],
    ['the metrics', 'metrics', 'metrics.jsonl', 'tfevents.1'],
  ] as const)('in place of %s aborts the export', async (_, part, name, target) => {
    rmSync(join(folder, name), { recursive: true, force: true });
    symlinkSync(join(secret, target), join(folder, name));
    await expect(exportRun(await read(folder), [part], out())).rejects.toThrow(
      /is a link or not a regular file, so it cannot be exported: replace it with a regular file, or remove it/,
    );
    expect(exported()).not.toContain('secret');
  });

  test('in place of the notes is not opened for editing', async () => {
    symlinkSync(join(secret, 'tfevents.1'), join(folder, 'notes.md'));
    await expect(notesFile(folder, basename(folder))).rejects.toThrow(
      /notes\.md cannot be written \(it is not a regular file\)/,
    );
  });
});

test('a file or a non-empty folder in place of the labels’ lock is an error, not an endless wait', async () => {
  const lock = join(folder, 'labels.json.lock');
  const makes = [() => writeFileSync(lock, ''), () => mkdirSync(join(lock, 'full'), { recursive: true })];
  for (const make of makes) {
    make();
    utimesSync(lock, 1, 1);
    await expect(changeLabels(folder, () => ({ name: 'x' }))).rejects.toThrow(/labels\.json\.lock cannot be written/);
    rmSync(lock, { recursive: true });
  }
  await changeLabels(folder, () => ({ name: 'x' }));
  expect((await read(folder)).summary?.name).toBe('x');
});
