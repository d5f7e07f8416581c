// One checksum over a model's weight files, stored in a run's manifest. The checksum is compared when a run loads its
// base model again, because the adapters of the run are of no use on another base. Files are hashed completely; the
// hash of an unchanged file is cached (node/checksum-cache.ts).
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '../../run-data/run-manifest';
import { UserError } from '../../common/user-error';
import { digestFile, storeError } from '../../node/files';
import { readDownloaded } from '../../hub/hub-cache';
import { cachedChecksum } from '../../node/checksum-cache';
import { matchesEtag } from '../../hub/content-checksum';

export const isWeights = (name: string): boolean => name.endsWith('.safetensors');

/** Combines the checksums of weight files, sorted by name, into one checksum (hex). */
export function checksumTogether(sums: readonly { name: string; sha256: string }[]): string {
  const hash = createHash('sha256');
  for (const { name, sha256 } of [...sums].sort((a, b) => (a.name < b.name ? -1 : 1)))
    hash.update(`${name} ${sha256}\n`);
  return hash.digest('hex');
}

/**
 * Returns the checksum (hex) over all weight files in a model folder.
 * @param fresh true reads all files again, including files with a cached hash
 * @throws UserError for a weight file that is not a regular file
 */
export async function modelChecksum(folder: string, fresh = false): Promise<string> {
  const sums = [];
  for (const name of readdirSync(folder).filter(isWeights))
    sums.push({ name, sha256: await fileChecksum(join(folder, name), fresh) });
  return checksumTogether(sums);
}

/**
 * Checks that the weights in a model folder are the weights with which a run was created. Skips the check if the
 * manifest has no checksum.
 * @throws UserError if the weights differ
 */
export async function requireSameModel(
  { id, manifest: { model } }: { id: string; manifest: Pick<Manifest, 'model'> },
  folder: string,
): Promise<void> {
  if (!/^[0-9a-f]{64}$/.test(model.sha256)) return;
  if ((await modelChecksum(folder)) === model.sha256) return;
  const found = await modelChecksum(folder, true); // the cached hash may be wrong
  if (found === model.sha256 || (model.revision !== undefined && (await isAsFetched(folder)))) return;
  throw new UserError(
    `run ${id}: the weights in ${folder} have the checksum ${found.slice(0, 12)}…, but the run was created with weights of checksum ${model.sha256.slice(0, 12)}…: restore the model's files, or start a new run`,
  );
}

/**
 * Whether all weight files in a folder of the hub cache match their etags. Used when the folder's checksum differs from
 * the checksum in the run's manifest, because the manifest's checksum may cover weight files that were not downloaded
 * to this folder.
 */
async function isAsFetched(folder: string): Promise<boolean> {
  const files = (await readDownloaded(folder)).filter(({ name }) => isWeights(name));
  for (const file of files) if (!(await matchesEtag(join(folder, file.name), file))) return false;
  return files.length > 0;
}

async function fileChecksum(file: string, fresh: boolean): Promise<string> {
  try {
    return await cachedChecksum(file, 'sha256', async () => (await digestFile(file, { within: null })).sha256, fresh);
  } catch (error) {
    throw storeError('read', file, error);
  }
}
