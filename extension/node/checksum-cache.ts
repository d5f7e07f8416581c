// Caches checksums of files in the user's cache folder, so that an unchanged file is read only once. The cache key
// consists of the file's device, inode, size, modification time and change time, with times in nanoseconds. Programs
// cannot set the change time, so a changed file has another key.
import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { jsonOrNothing } from '../common/json';
import { installation } from './installation';
import { makeFolder, replaceFile } from './files';
import { readRegularSync } from './regular-file';

/** `sha256` is the SHA-256 of a file's bytes. `git` is the SHA-1 that git uses as the id of a blob with these bytes. */
export type ChecksumKind = 'sha256' | 'git';

const schemas = {
  sha256: z.object({ identity: z.string(), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  git: z.object({ identity: z.string(), git: z.string().regex(/^[0-9a-f]{40}$/) }),
};

/**
 * Minimum age of a file's last change in milliseconds; the checksum of a file that was changed more recently is not
 * cached. Such a file could change again within the same clock tick of the file system, and its key would then stay the
 * same.
 */
const settledMs = 2000;

/**
 * Returns the checksum (hex) of a file from the cache, or from `compute` if the cache lacks it. If `fresh` is true,
 * `compute` is called in any case.
 * @throws the system's error, and errors of `compute`
 */
export async function cachedChecksum(
  file: string,
  kind: ChecksumKind,
  compute: () => Promise<string>,
  fresh = false,
): Promise<string> {
  const path = await realpath(file);
  const name = createHash('sha256')
    .update(kind === 'sha256' ? path : `${kind} ${path}`)
    .digest('hex');
  const kept = join(installation.cache, 'checksums', `${name.slice(0, 32)}.json`);
  const identity = await identityOf(path);
  const known = fresh ? undefined : readKept(kept, kind);
  if (known?.identity === identity.text) return known.sum;
  const sum = await compute();
  const settled = Math.abs(Date.now() - identity.changedMs) > settledMs;
  if (settled && (await identityOf(path)).text === identity.text)
    await keep(kept, { identity: identity.text, [kind]: sum });
  return sum;
}

async function identityOf(path: string): Promise<{ text: string; changedMs: number }> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  const changedMs = Math.max(Number(mtimeNs), Number(ctimeNs)) / 1e6;
  return { text: [basename(path), dev, ino, size, mtimeNs, ctimeNs].join(' '), changedMs };
}

function readKept(file: string, kind: ChecksumKind): { identity: string; sum: string } | undefined {
  try {
    const kept = schemas[kind].safeParse(jsonOrNothing(readRegularSync(file).toString('utf8'))).data;
    return kept && { identity: kept.identity, sum: 'git' in kept ? kept.git : kept.sha256 };
  } catch {
    return undefined;
  }
}

/** Writes to the cache; failures are ignored, because a missing entry only costs time. */
async function keep(file: string, document: Record<string, string>): Promise<void> {
  try {
    await makeFolder(dirname(file));
    await replaceFile(file, `${JSON.stringify(document)}\n`);
  } catch {
    return;
  }
}
