// Checkpoints: several files with one commit point. All files are written and fsynced in a temporary folder, with
// `checkpoint.json` and its checksums last; then the folder is renamed into place. Older checkpoints are removed only
// afterwards. After a crash at any time, the newest valid checkpoint is either the previous or the new one.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, lstatSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { isMissing, regularTargetSync } from '../../node/bounded-file';
import { checkpointFolder, runFiles } from '../../run-data/run-files';
import { UserError } from '../../common/user-error';
import { bytesOf, digestFile, fileSystem, makeFolder, storeError, syncFolder, writeNewFile } from '../../node/files';
import { canonicalJson } from '../config/config-hash';
import type { FileSystem } from '../../node/files';
import type { RunSeal } from './manifest-seal';

const manifestName = 'checkpoint.json';
/** Maximum bytes of a checkpoint.json, which lists files and random stream states. */
const mostManifestBytes = 2 ** 26;
const fileName = /^[A-Za-z0-9][\w.-]*$/;
const stepFolder = /^step-(\d{6,})$/;
const replacedFolder = /^\.old-(step-\d{6,})$/;

const checkpointSchema = z.strictObject({
  schema: z.union([z.literal(1), z.literal(2)]).describe('1: written by a version without sha256'),
  step: z.int().min(0).describe('steps finished'),
  files: z.record(
    z.string().regex(fileName),
    z.object({ bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  offsets: z.record(z.string(), z.int().min(0)).describe('length of each JSONL file at this moment'),
  streams: z.record(z.string(), z.json()).describe('states of the random streams by name'),
  seed_counter: z.int().min(0).describe('seeds that the training groups have used'),
  state: z.json().describe('further trainer state needed to resume'),
  run: z
    .object({ id: z.string(), manifest: z.string() })
    .optional()
    .describe('owning run: id and seal of its manifest (manifest-seal.ts)'),
  log_chain: z.string().optional().describe('last link of checksums.jsonl at this moment (log-ledger.ts)'),
  sha256: z.string().optional().describe('sha256 of all other keys, as canonical JSON'),
});
/** The content of `checkpoint.json`. */
export type CheckpointManifest = z.infer<typeof checkpointSchema>;
/** The content of a checkpoint besides its files. */
export type CheckpointState = Omit<CheckpointManifest, 'schema' | 'files' | 'sha256'>;

/** Named contents: weights and optimizer states (Float32Array, little-endian) or any bytes. */
export type Blobs = Readonly<Record<string, Uint8Array | Float32Array>>;

/** A checkpoint with a valid manifest. */
export interface StoredCheckpoint {
  folder: string;
  manifest: CheckpointManifest;
}

/** A folder that is not a valid checkpoint, and why. */
export interface BrokenCheckpoint {
  folder: string;
  reason: string;
}

/**
 * Writes the checkpoint of `state.step` into the run folder, then removes all but the `keep` newest (≥ 1, including the
 * new one) and those of later steps, which a run resumed from an earlier step has discarded. Returns the new folder.
 * Errors are UserErrors and leave the existing checkpoints unchanged.
 */
export async function writeCheckpoint(
  runFolder: string,
  state: CheckpointState,
  blobs: Blobs,
  keep: number,
  fs: FileSystem = fileSystem,
): Promise<string> {
  const parent = join(runFolder, runFiles.checkpoints);
  const folder = join(runFolder, checkpointFolder(state.step));
  const temporary = join(parent, `.tmp-${basename(folder)}-${randomBytes(6).toString('hex')}`);
  const replaced = join(parent, `.old-${basename(folder)}`);
  try {
    await makeFolder(parent, fs, runFolder);
    await recover(parent, fs);
    await fs.mkdir(temporary);
    const files: CheckpointManifest['files'] = {};
    for (const [name, blob] of Object.entries(blobs)) {
      if (!fileName.test(name) || name === manifestName)
        throw new UserError(
          `store: a checkpoint cannot have a file ${name}: name it with letters, digits, dots and hyphens`,
        );
      files[name] = await writeNewFile(join(temporary, name), [bytesOf(blob)], fs);
    }
    const unsealed = checkpointSchema.parse({ schema: 2, ...state, files });
    const manifest: CheckpointManifest = { ...unsealed, sha256: manifestSum(unsealed) };
    await writeNewFile(join(temporary, manifestName), [Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`)], fs);
    await syncFolder(temporary, fs);
    // A folder cannot be renamed over another, so an existing one of the same step is renamed aside first; after a
    // crash `recover` or `newestValid` finds it there.
    if (await exists(folder, fs)) await fs.rename(folder, replaced);
    await fs.rename(temporary, folder);
    await syncFolder(parent, fs);
  } catch (error) {
    await fs.rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    await recover(parent, fs).catch(() => undefined);
    throw storeError('write the checkpoint', folder, error);
  }
  await removeOthers(parent, state.step, keep, fs);
  return folder;
}

/**
 * Returns the newest checkpoint whose files all match their checksums, or null, and the broken ones found before it,
 * newest first. With `owner`, a checkpoint of another run counts as broken. Reads only.
 */
export async function newestValid(
  runFolder: string,
  fs: FileSystem = fileSystem,
  owner?: RunSeal,
): Promise<{ checkpoint: StoredCheckpoint | null; broken: BrokenCheckpoint[] }> {
  const parent = join(runFolder, runFiles.checkpoints);
  const names = await listFolder(parent, fs);
  const candidates = names
    .map(name => ({ name, step: stepFolder.exec(replacedFolder.exec(name)?.[1] ?? name)?.[1] }))
    .filter((candidate): candidate is { name: string; step: string } => candidate.step !== undefined)
    // For the same step, the checkpoint in place precedes the one renamed aside.
    .sort((a, b) => Number(b.step) - Number(a.step) || (a.name < b.name ? 1 : -1));
  const broken: BrokenCheckpoint[] = [];
  for (const { name } of candidates) {
    const folder = join(parent, name);
    try {
      const manifest = await readManifest(folder, fs);
      if (owner) refuseForeign({ folder, manifest }, owner);
      for (const file of Object.keys(manifest.files)) await verify(folder, file, manifest, fs);
      return { checkpoint: { folder, manifest }, broken };
    } catch (error) {
      broken.push({ folder, reason: storeError('read', folder, error).message });
    }
  }
  return { checkpoint: null, broken };
}

/**
 * Returns the newest checkpoint of a run, verified, or null if it has none. A newer damaged one is an error: continuing
 * from an older one is the user's decision. `command` completes the remedy, given the name of the newest intact one.
 * @throws UserError
 */
export async function newestCheckpoint(
  runFolder: string,
  owner: RunSeal,
  command: (name: string) => string,
): Promise<StoredCheckpoint | null> {
  const { checkpoint, broken } = await newestValid(runFolder, fileSystem, owner);
  if (broken.length === 0) return checkpoint;
  const [{ reason }] = broken;
  if (!checkpoint) throw new UserError(`${reason} (run ${basename(runFolder)} has no intact checkpoint)`);
  const name = basename(checkpoint.folder);
  throw new UserError(`${reason} (the newest intact checkpoint is ${name}: ${command(name)})`);
}

/** Throws a UserError if a checkpoint names another run; a checkpoint of an earlier version names none. */
export function refuseForeign({ folder, manifest: { run } }: StoredCheckpoint, owner: RunSeal): void {
  if (run === undefined || (run.id === owner.id && run.manifest === owner.manifest)) return;
  throw new UserError(
    run.id === owner.id
      ? `store: ${folder} was written under another manifest of run ${owner.id}: restore manifest.json as it was, or begin a new run with trainer.resume_mode=resume_path`
      : `store: ${folder} is a checkpoint of run ${run.id} and not of ${owner.id}: begin a new run with it by trainer.resume_mode=resume_path`,
  );
}

/** Opens the checkpoint in `folder`: reads and checks its manifest; its files are checked when they are read. */
export async function openCheckpoint(folder: string, fs: FileSystem = fileSystem): Promise<StoredCheckpoint> {
  try {
    return { folder, manifest: await readManifest(folder, fs) };
  } catch (error) {
    throw storeError('read', folder, error);
  }
}

/**
 * Checks that all files of a checkpoint exist and match their checksums. Throws a UserError naming the first that does
 * not.
 */
export async function verifyCheckpoint(
  { folder, manifest }: StoredCheckpoint,
  fs: FileSystem = fileSystem,
): Promise<void> {
  try {
    for (const name of Object.keys(manifest.files)) await verify(folder, name, manifest, fs);
  } catch (error) {
    throw storeError('read', folder, error);
  }
}

/** Removes the checkpoints of steps after `step`, for a run that is rolled back to it: its logs are cut as well. */
export async function removeLater(runFolder: string, step: number, fs: FileSystem = fileSystem): Promise<void> {
  const parent = join(runFolder, runFiles.checkpoints);
  for (const name of await listFolder(parent, fs)) {
    const later = Number(stepFolder.exec(replacedFolder.exec(name)?.[1] ?? name)?.[1]) > step;
    if (!later) continue;
    try {
      await fs.rm(join(parent, name), { recursive: true, force: true });
    } catch (error) {
      throw storeError('remove', join(parent, name), error);
    }
  }
}

/** `checkpoints/step-000100` for `step-000100`, `100` or `step-100`. Throws a UserError for any other text. */
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
  if (!entry) throw new UserError(`store: the checkpoint ${folder} has no file ${name}: resume from another one`);
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

/** Like `readBlob`, for a blob written from a Float32Array. */
export async function readFloats(
  checkpoint: StoredCheckpoint,
  name: string,
  fs: FileSystem = fileSystem,
): Promise<Float32Array> {
  const bytes = await readBlob(checkpoint, name, fs);
  if (bytes.length % 4 !== 0)
    throw damaged(checkpoint.folder, name, `has ${bytes.length} bytes, which are no 32-bit numbers`);
  return new Float32Array(bytes.buffer, 0, bytes.length / 4);
}

const damaged = (folder: string, name: string, how: string): UserError =>
  new UserError(`store: ${join(folder, name)} ${how}: resume from another checkpoint`);

async function readManifest(folder: string, fs: FileSystem): Promise<CheckpointManifest> {
  const target = targetOf(folder, manifestName);
  if (lstatSync(target).size > mostManifestBytes)
    throw damaged(folder, manifestName, 'is larger than any checkpoint’s');
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
  throw damaged(folder, manifestName, `is not a checkpoint's (${issue.path.join('.')}: ${issue.message})`);
}

/** sha256 (hex) of a manifest's other members. */
function manifestSum({ sha256: _, ...rest }: CheckpointManifest): string {
  return createHash('sha256').update(canonicalJson(rest)).digest('hex');
}

/** The real path of a checkpoint's file. */
function targetOf(folder: string, name: string): string {
  try {
    return regularTargetSync(join(folder, name));
  } catch (error) {
    if (isMissing(error) && existsSync(folder)) throw damaged(folder, name, 'is gone');
    throw error;
  }
}

async function verify(folder: string, name: string, manifest: CheckpointManifest, fs: FileSystem): Promise<void> {
  const expected = manifest.files[name];
  const size = lstatSync(targetOf(folder, name)).size;
  if (size !== expected.bytes) throw damaged(folder, name, `has ${size} bytes instead of ${expected.bytes}`);
  const { bytes, sha256 } = await digestFile(join(folder, name), { fs });
  if (bytes !== expected.bytes) throw damaged(folder, name, `has ${bytes} bytes instead of ${expected.bytes}`);
  if (sha256 !== expected.sha256) throw damaged(folder, name, 'does not match its checksum');
}

/**
 * Recovers from an interrupted save: removes temporary folders, and restores a checkpoint renamed aside unless its
 * successor is in place.
 */
async function recover(parent: string, fs: FileSystem): Promise<void> {
  const names = await listFolder(parent, fs);
  for (const name of names) {
    const step = replacedFolder.exec(name)?.[1];
    if (step !== undefined && !names.includes(step)) await fs.rename(join(parent, name), join(parent, step));
    else if (step !== undefined || name.startsWith('.tmp-'))
      await fs.rm(join(parent, name), { recursive: true, force: true });
  }
}

/** Removes other checkpoints once the new one is in place; failed removals are retried after the next checkpoint. */
async function removeOthers(parent: string, step: number, keep: number, fs: FileSystem): Promise<void> {
  try {
    await recover(parent, fs);
    const steps = (await listFolder(parent, fs)).flatMap(name => stepFolder.exec(name)?.[1] ?? []);
    const older = steps.filter(text => Number(text) < step).sort((a, b) => Number(b) - Number(a));
    const later = steps.filter(text => Number(text) > step);
    for (const text of [...later, ...older.slice(Math.max(keep, 1) - 1)])
      await fs.rm(join(parent, `step-${text}`), { recursive: true, force: true });
  } catch {
    // Costs disk space only.
  }
}

async function listFolder(folder: string, fs: FileSystem): Promise<string[]> {
  try {
    return await fs.readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw storeError('read', folder, error);
  }
}

async function exists(path: string, fs: FileSystem): Promise<boolean> {
  try {
    await fs.stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
