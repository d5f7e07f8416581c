// Compares downloaded contents with their etags. An etag is a sha256, or git's sha1 of a blob. A file is read on its
// first check and again after it has changed (node/checksum-cache.ts).
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { storeError } from '../node/files';
import type { HubFile } from './hub-client';
import { cachedChecksum } from '../node/checksum-cache';
import { openRegular } from '../node/regular-file';

/** Returns the size of a file in bytes; null if the file does not exist. */
export async function sizeOf(file: string): Promise<number | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? found.size : null;
}

/**
 * Returns a new hash object for the algorithm of an etag: sha256, or git's sha1 of a blob. Git's sha1 also covers the
 * blob's length; the returned object has already hashed this length.
 */
export function hashFor({ etag, bytes }: Pick<HubFile, 'etag' | 'bytes'>): Hash {
  return etag.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Whether the bytes of a file match its etag. @throws the reason of `signal` when it is aborted */
export async function matchesEtag(path: string, file: HubFile, signal?: AbortSignal): Promise<boolean> {
  return (await contentSum(path, file, signal)) === file.etag;
}

/** Returns the checksum of a file's content, of the same type as its etag. */
async function contentSum(path: string, file: HubFile, signal?: AbortSignal): Promise<string> {
  const hash = hashFor(file);
  signal?.throwIfAborted();
  const handle = await openRegular(path);
  for await (const chunk of handle.createReadStream()) {
    hash.update(chunk as Buffer);
    signal?.throwIfAborted();
  } // the stream closes the handle
  return hash.digest('hex');
}

/**
 * Whether an etag is a checksum. It is not a checksum if another tool downloaded the file to a cache that does not use
 * links. Such a cache stores the file under its normal name, and this name is used as the etag.
 */
const isChecksum = (etag: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(etag);

/**
 * Whether a file's content matches its etag; true if the etag is not a checksum. The file is read on its first check
 * and again after it has changed.
 */
export async function isSound(path: string, file: HubFile, signal?: AbortSignal): Promise<boolean> {
  if (!isChecksum(file.etag)) return true;
  const kind = file.etag.length === 64 ? 'sha256' : 'git';
  const sum = await cachedChecksum(path, kind, () => contentSum(path, file, signal)).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw storeError('read', path, error);
  });
  return sum === file.etag;
}
