// Reads stored checkpoints: `checkpoint.json`, and the files whose checksums it contains. Every file is verified when
// it is read. checkpoint-writer.ts writes checkpoints; newest-checkpoint.ts finds the one to continue from.
import { createHash } from 'node:crypto';
import { existsSync, lstatSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { isMissing, regularTargetSync } from '../../node/bounded-file';
import { checkpointFolder } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { digestFile, fileSystem, storeError } from '../../node/files';
import { canonicalJson } from '../config/config-hash';
import type { FileSystem } from '../../node/files';

export const manifestName = 'checkpoint.json';
/** Maximum bytes of a checkpoint.json, which lists the files and the states of random streams. */
const mostManifestBytes = 2 ** 26;
export const fileName = /^[A-Za-z0-9][\w.-]*$/;
export const stepFolder = /^step-(\d{6,})$/;
export const replacedFolder = /^\.old-(step-\d{6,})$/;

export const checkpointSchema = z.strictObject({
  schema: z
    .union([z.literal(1), z.literal(2)])
    .describe('version of this format: 2; checkpoints of earlier versions have 1 and lack the key sha256'),
  step: z.int().min(0).describe('number of finished steps'),
  files: z.record(
    z.string().regex(fileName),
    z.object({ bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  offsets: z.record(z.string(), z.int().min(0)).describe('length of each JSONL file in bytes at this step'),
  streams: z.record(z.string(), z.json()).describe('states of the random streams by name'),
  seed_counter: z.int().min(0).describe('number of seeds that the training groups have used'),
  state: z.json().describe('further trainer state needed to resume'),
  run: z
    .object({ id: z.string(), manifest: z.string() })
    .optional()
    .describe('id of the run to which the checkpoint belongs, and the seal of this run’s manifest (manifest-seal.ts)'),
  log_chain: z.string().optional().describe('last hash in the chain of checksums.jsonl at this step (log-ledger.ts)'),
  sha256: z.string().optional().describe('sha256 of all other keys, as canonical JSON'),
});
/** The content of `checkpoint.json`. */
export type CheckpointManifest = z.infer<typeof checkpointSchema>;
/** The content of `checkpoint.json` without schema, files and checksum; the writer adds these keys. */
export type CheckpointState = Omit<CheckpointManifest, 'schema' | 'files' | 'sha256'>;

/** A checkpoint with a valid manifest. */
export interface StoredCheckpoint {
  folder: string;
  manifest: CheckpointManifest;
}

/** Opens the checkpoint in `folder`: reads and validates its manifest. Other files are verified when they are read. */
export async function openCheckpoint(folder: string, fs: FileSystem = fileSystem): Promise<StoredCheckpoint> {
  try {
    return { folder, manifest: await readManifest(folder, fs) };
  } catch (error) {
    throw storeError('read', folder, error);
  }
}

/**
 * Verifies that all files of a checkpoint exist and match their checksums. Throws a UserError that names the first
 * missing or damaged file.
 */
export async function verifyCheckpoint(
  { folder, manifest }: StoredCheckpoint,
  fs: FileSystem = fileSystem,
): Promise<void> {
  try {
    for (const name of Object.keys(manifest.files)) await verifyFile(folder, name, manifest, fs);
  } catch (error) {
    throw storeError('read', folder, error);
  }
}

/**
 * Returns the path `checkpoints/step-000100` for `step-000100`, `100` or `step-100`. Throws a UserError for any other
 * text.
 */
export function checkpointNamed(name: string): string {
  const step = /^(?:step-)?(\d{1,15})$/.exec(name)?.[1];
  if (step === undefined) throw new UserError(`store: ${name} is not a checkpoint: name one like step-000100`);
  return checkpointFolder(Number(step));
}

/** Reads one file of a checkpoint and verifies its checksum. */
export async function readBlob(
  { folder, manifest }: StoredCheckpoint,
  name: string,
  fs: FileSystem = fileSystem,
): Promise<Uint8Array> {
  const entry = Object.hasOwn(manifest.files, name) ? manifest.files[name] : undefined;
  if (!entry)
    throw new UserError(`store: the checkpoint ${folder} has no file ${name}: resume from another checkpoint`);
  try {
    const bytes = new Uint8Array(entry.bytes);
    const handle = await fs.open(join(folder, name), 'r');
    try {
      for (let at = 0; at < bytes.length;) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, at);
        if (bytesRead === 0) throw damaged(folder, name, 'is cut short');
        at += bytesRead;
      }
    } finally {
      await handle.close();
    }
    if (createHash('sha256').update(bytes).digest('hex') !== entry.sha256)
      throw damaged(folder, name, 'does not match its checksum');
    return bytes;
  } catch (error) {
    throw storeError('read', join(folder, name), error);
  }
}

/** Like `readBlob`, for a file that was written from a Float32Array. */
export async function readFloats(
  checkpoint: StoredCheckpoint,
  name: string,
  fs: FileSystem = fileSystem,
): Promise<Float32Array> {
  const bytes = await readBlob(checkpoint, name, fs);
  if (bytes.length % 4 !== 0)
    throw damaged(checkpoint.folder, name, `has ${bytes.length} bytes, which is not a multiple of 4`);
  return new Float32Array(bytes.buffer, 0, bytes.length / 4);
}

const damaged = (folder: string, name: string, how: string): UserError =>
  new UserError(`store: ${join(folder, name)} ${how}: resume from another checkpoint`);

export async function readManifest(folder: string, fs: FileSystem): Promise<CheckpointManifest> {
  const target = targetOf(folder, manifestName);
  if (lstatSync(target).size > mostManifestBytes)
    throw damaged(folder, manifestName, `has more than ${mostManifestBytes} bytes`);
  const text = await fs.readFile(target, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(folder, manifestName, 'is not JSON');
  }
  const parsed = checkpointSchema.safeParse(value);
  if (parsed.success) {
    const { schema, sha256, step } = parsed.data;
    if ((schema === 2 || sha256 !== undefined) && sha256 !== manifestSum(value as CheckpointManifest))
      throw damaged(folder, manifestName, 'does not match its checksum (sha256)');
    const named = stepFolder.exec(basename(folder).replace('.old-', ''))?.[1];
    if (named !== undefined && Number(named) !== step)
      throw damaged(folder, manifestName, `is for step ${step}, which does not match its folder's name`);
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw damaged(folder, manifestName, `does not have the expected format (${issue.path.join('.')}: ${issue.message})`);
}

/** Returns the sha256 (hex) of a manifest without its own checksum. */
export function manifestSum({ sha256: _, ...rest }: CheckpointManifest): string {
  return createHash('sha256').update(canonicalJson(rest)).digest('hex');
}

/** Returns the real path of a checkpoint's file. */
function targetOf(folder: string, name: string): string {
  try {
    return regularTargetSync(join(folder, name));
  } catch (error) {
    if (isMissing(error) && existsSync(folder)) throw damaged(folder, name, 'is gone');
    throw error;
  }
}

export async function verifyFile(
  folder: string,
  name: string,
  manifest: CheckpointManifest,
  fs: FileSystem,
): Promise<void> {
  const expected = manifest.files[name];
  const size = lstatSync(targetOf(folder, name)).size;
  if (size !== expected.bytes) throw damaged(folder, name, `has ${size} bytes instead of ${expected.bytes}`);
  const { bytes, sha256 } = await digestFile(join(folder, name), { fs });
  if (bytes !== expected.bytes) throw damaged(folder, name, `has ${bytes} bytes instead of ${expected.bytes}`);
  if (sha256 !== expected.sha256) throw damaged(folder, name, 'does not match its checksum');
}

export async function listFolder(folder: string, fs: FileSystem): Promise<string[]> {
  try {
    return await fs.readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw storeError('read', folder, error);
  }
}
