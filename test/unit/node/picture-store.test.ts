// The store of pictures: one write for concurrent additions, and a picture that was deleted meanwhile is stored again.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PictureStore } from '../../../extension/node/picture-store';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();

test('a picture is stored once, and again after its file was deleted', async () => {
  const store = new PictureStore(folder());
  const bytes = Buffer.from('picture');
  const names = await Promise.all([store.add(bytes), store.add(bytes), store.add(bytes)]);
  expect(new Set(names).size).toBe(1);
  expect(readdirSync(store.folder)).toEqual([names[0]]);
  rmSync(join(store.folder, names[0]));
  expect(await store.add(bytes)).toBe(names[0]);
  expect(readFileSync(join(store.folder, names[0]), 'utf8')).toBe('picture');
});
