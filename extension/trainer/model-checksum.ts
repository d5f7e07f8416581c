// One checksum of a model's weights files: a run's manifest holds it, and a run that reads the base model again compares it, since another
// base under the same adapters trains otherwise. Files are hashed whole. What a hash was is kept in the user's cache by the file's identity
// (device, inode, size, times of change to the nanosecond), so that an unchanged file is read once.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { jsonOrNothing } from '../protocol/json';
import type { Manifest } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { installation } from './installation';
import { digestFile, makeFolder, replaceFile, storeError } from './store/files';
import { matchesEtag, readDownloaded } from './store/hub-cache';

const storedSchema = z.object({ identity: z.string(), sha256: z.string().regex(/^[0-9a-f]{64}$/) });

/** A file that was changed so shortly ago may change again within the same tick of the file system's clock: its hash is not kept. */
const settledMs = 2000;

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
    const path = await realpath(file);
    const kept = join(installation.cache, 'checksums', `${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`); // prettier-ignore
    const identity = await identityOf(path);
    const known = fresh ? undefined : keptChecksum(kept);
    if (known?.identity === identity.text) return known.sha256;
    const { sha256 } = await digestFile(file, { within: null });
    const settled = Math.abs(Date.now() - identity.changedMs) > settledMs;
    if (settled && (await identityOf(path)).text === identity.text) await keep(kept, identity.text, sha256);
    return sha256;
  } catch (error) {
    throw storeError('read', file, error);
  }
}

/** What changes with a file's bytes: the system sets the time of change, no program can. */
async function identityOf(path: string): Promise<{ text: string; changedMs: number }> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  const changedMs = Math.max(Number(mtimeNs), Number(ctimeNs)) / 1e6;
  return { text: [basename(path), dev, ino, size, mtimeNs, ctimeNs].join(' '), changedMs };
}

function keptChecksum(file: string): z.infer<typeof storedSchema> | undefined {
  try {
    return storedSchema.safeParse(jsonOrNothing(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** A cache that cannot be written costs time alone. */
async function keep(file: string, identity: string, sha256: string): Promise<void> {
  try {
    await makeFolder(join(file, '..'));
    await replaceFile(file, `${JSON.stringify({ identity, sha256 })}\n`);
  } catch {
    return;
  }
}
