// Loads mutated model folders, as many as fit into a test run (test/torture/model-folders.ts loads thousands).
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { foldersInCi, tryModelFolders } from '../torture/model-folders';
import { mutateFolder, mutationNames } from '../torture/model-folder-mutations';
import { buildBundles, root } from '../support/bundles';

/** Folder with the files that the bundle loads from beside itself. */
const installed = mkdtempSync(join(tmpdir(), 'ragen-folders-'));
let entry: string;
beforeAll(async () => {
  for (const name of ['envs', 'media']) symlinkSync(join(root, name), join(installed, name), 'junction');
  const source = { 'model-folders-process': 'test/torture/model-folders-process.ts' };
  await buildBundles(source, join(installed, 'dist'));
  entry = join(installed, 'dist', 'model-folders-process.cjs');
});
afterAll(() => rmSync(installed, { recursive: true, force: true }));

it(`${foldersInCi} mutated folders are loaded or refused with a sentence`, { timeout: 300_000 }, async () => {
  const [found] = await tryModelFolders(foldersInCi, 1, entry, () => undefined);
  expect(found.findings).toEqual([]);
  expect(found.inputs).toBe(foldersInCi);
  expect(found.refused).toBeGreaterThan(foldersInCi / 3);
  expect(found.refused).toBeLessThan(foldersInCi);
});

it('mutations are determined by the random stream, and every kind of mutation occurs', () => {
  const sound = join(installed, 'sound');
  cpSync('test/golden/llama', sound, { recursive: true });
  cpSync('test/golden/lora/q-v', join(sound, 'adapter'), { recursive: true });
  const done = (seed: number): string[] => mutateFolder(sound, join(installed, 'folder'), new RandomStream(seed));
  const seeds = Array.from({ length: 150 }, (_, seed) => seed);
  const all = seeds.map(done);
  expect(seeds.slice(0, 20).map(done)).toEqual(all.slice(0, 20));
  expect(new Set(all.flat())).toEqual(new Set(mutationNames));
});
