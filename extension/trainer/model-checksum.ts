// One checksum of a model's weights files: a run's manifest holds it, and a run that reads the base model again compares it, since another
// base under the same adapters trains otherwise. Files are hashed whole, and an unchanged file once (store/kept-checksums.ts).
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { digestFile, storeError } from './store/files';
import { matchesEtag, readDownloaded } from './store/hub-cache';
import { keptChecksum } from './store/kept-checksums';

export const isWeights = (name: string): boolean => name.endsWith('.safetensors');

/** One checksum (hex) of weights files by their names. */
export function checksumTogether(sums: readonly { name: string; sha256: string }[]): string {
  const hash = createHash('sha256');
  for (const { name, sha256 } of [...sums].sort((a, b) => (a.name < b.name ? -1 : 1)))
    hash.update(`${name} ${sha256}\n`);
  return hash.digest('hex');
}

/**
 * The checksum (hex) of all weights files in a model folder.
 * @param fresh reads all bytes, also of files whose hash is known
 * @throws UserError for what is no regular file
 */
export async function modelChecksum(folder: string, fresh = false): Promise<string> {
  const sums = [];
  for (const name of readdirSync(folder).filter(isWeights))
    sums.push({ name, sha256: await fileChecksum(join(folder, name), fresh) });
  return checksumTogether(sums);
}

/**
 * Compares the weights in a model folder with those that a run was made with. A manifest without a checksum is not compared.
 * @throws UserError where they are others
 */
export async function requireSameModel(
  { id, manifest: { model } }: { id: string; manifest: Pick<Manifest, 'model'> },
  folder: string,
): Promise<void> {
  if (!/^[0-9a-f]{64}$/.test(model.sha256)) return;
  if ((await modelChecksum(folder)) === model.sha256) return;
  const found = await modelChecksum(folder, true); // what the cache holds may be damaged
  if (found === model.sha256 || (model.revision !== undefined && (await isAsFetched(folder)))) return;
  throw new UserError(
    `run ${id}: the weights in ${folder} have the checksum ${found.slice(0, 12)}…, but the run was made with ${model.sha256.slice(0, 12)}…: restore the model's files, or start a new run`,
  );
}

/** Whether the weights of a folder in the hub's cache are those of its commit: a manifest may list files that are not fetched. */
async function isAsFetched(folder: string): Promise<boolean> {
  const files = (await readDownloaded(folder)).filter(({ name }) => isWeights(name));
  for (const file of files) if (!(await matchesEtag(join(folder, file.name), file))) return false;
  return files.length > 0;
}

async function fileChecksum(file: string, fresh: boolean): Promise<string> {
  try {
    return await keptChecksum(file, 'sha256', async () => (await digestFile(file, { within: null })).sha256, fresh);
  } catch (error) {
    throw storeError('read', file, error);
  }
}
