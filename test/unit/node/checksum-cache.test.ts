// Checksums cached by file identity: an unchanged file is read once, a changed one again, and an unusable cache costs
// only time.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { ChecksumKind } from '../../../extension/node/checksum-cache';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();
const kinds: [ChecksumKind, string][] = [
  ['sha256', 'a'.repeat(64)],
  ['git', 'b'.repeat(40)],
];

/** Loads the module with its cache below the test's folder. */
async function loaded() {
  process.env.XDG_CACHE_HOME = join(folder(), 'cache');
  vi.resetModules();
  try {
    return await import('../../../extension/node/checksum-cache');
  } finally {
    delete process.env.XDG_CACHE_HOME;
  }
}

test.each(kinds)(
  'the %s of a file is computed once, and again after the file has changed',
  async (kind, sum) => {
    const { cachedChecksum } = await loaded();
    const file = join(folder(), 'weights');
    writeFileSync(file, 'one');
    const compute = vi.fn(() => Promise.resolve(sum));
    // A file written within one tick of the file system's clock may change unnoticed, so its checksum is not cached.
    await vi.waitFor(
      async () => {
        compute.mockClear();
        expect(await cachedChecksum(file, kind, compute)).toBe(sum);
        expect(compute).not.toHaveBeenCalled();
      },
      { timeout: 30_000, interval: 100 },
    );
    expect(await cachedChecksum(file, kind, compute, true)).toBe(sum);
    expect(compute).toHaveBeenCalledTimes(1);
    const other = kinds.find(([each]) => each !== kind)!;
    expect(await cachedChecksum(file, other[0], () => Promise.resolve(other[1]))).toBe(other[1]);
    writeFileSync(file, 'two');
    await cachedChecksum(file, kind, compute);
    expect(compute).toHaveBeenCalledTimes(2);
  },
  60_000,
);

test('a cache that is not a folder costs only time', async () => {
  const { cachedChecksum } = await loaded();
  const file = join(folder(), 'weights');
  writeFileSync(file, 'one');
  rmSync(join(folder(), 'cache'), { recursive: true, force: true });
  writeFileSync(join(folder(), 'cache'), '');
  expect(await cachedChecksum(file, 'sha256', () => Promise.resolve(kinds[0][1]))).toBe(kinds[0][1]);
});
