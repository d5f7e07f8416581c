// Writing files so that a crash or a full disk leaves either the old content or the new, never half of it: write a temporary file
// beside the target, fsync, rename, fsync the folder. File systems are handed in, so that tests can fail any call.
import { createHash, randomBytes } from 'node:crypto';
import * as nodeFs from 'node:fs';
import * as nodeFsPromises from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readFlags, regularTargetSync } from '../../protocol/bounded-file';
import { UserError } from '../../protocol/user-error';

/** Calls of node:fs/promises that the store uses. */
export type FileSystem = Pick<
  typeof nodeFsPromises,
  'open' | 'rename' | 'mkdir' | 'rm' | 'rmdir' | 'readdir' | 'readFile' | 'stat'
>;
/** Calls of node:fs that the store uses where order matters more than concurrency: small appends and the lease. */
export type SyncFileSystem = Pick<
  typeof nodeFs,
  | 'openSync'
  | 'closeSync'
  | 'readSync'
  | 'writeSync'
  | 'fsyncSync'
  | 'fstatSync'
  | 'ftruncateSync'
  | 'renameSync'
  | 'unlinkSync'
>;
export const fileSystem: FileSystem = nodeFsPromises;
export const syncFileSystem: SyncFileSystem = nodeFs;

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space',
  EDQUOT: 'your disk quota is used up: free space',
  EFBIG: 'the file is larger than the file system allows: use another disk',
  EACCES: 'access is denied: check the permissions',
  EPERM: 'the operation is not permitted: check the permissions',
  EROFS: 'the file system is read-only: mount it for writing again, or use another folder',
  EMFILE: 'too many files are open: raise the limit (ulimit -n)',
  ENFILE: 'too many files are open: close other programs',
  EIO: 'the disk reports an error: check it before going on',
  ENOENT: 'it does not exist: check the path',
  ENOTDIR: 'a part of the path is not a folder: check the path',
  EISDIR: 'it is a folder: check the path',
};

/** What may be granted later, in the same process: when there is room, when permissions are mended, when other programs close files. */
const passing = new Set(
  ['ENOSPC', 'EDQUOT', 'EIO', 'EACCES', 'EPERM', 'EROFS', 'EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOMEM'], // prettier-ignore
);

/** What the system refused and may grant later. */
export class StoreRefusal extends UserError {}

/**
 * The UserError for a failed file operation: names the file, the code and the remedy; a StoreRefusal where trying again may help. A
 * UserError passes through unchanged.
 */
export function storeError(doing: string, file: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = (code && remedies[code]) ?? `${message}: check the disk and the folder`;
  const Kind = code !== undefined && passing.has(code) ? StoreRefusal : UserError;
  return new Kind(`store: cannot ${doing} ${file}${code ? ` (${code})` : ''}: ${reason}`, { cause: error });
}

/**
 * Makes a folder, and those around it, where they are not there. Node.js's `recursive` is not used: where the system refuses a folder for another
 * reason than rights or room (a file system that has turned read-only), it reports that the path does not exist, and a run would
 * end instead of waiting. `root` is a folder above that is never made: a run's, which somebody may move away. Errors are UserErrors.
 */
export async function makeFolder(
  folder: string,
  fs: Pick<FileSystem, 'mkdir'> = fileSystem,
  root?: string,
  tries = mostTries,
): Promise<void> {
  try {
    await fs.mkdir(folder);
  } catch (error) {
    if (!lacksParent(folder, error, root, tries)) return;
    await makeFolder(dirname(folder), fs, root);
    await makeFolder(folder, fs, root, tries - 1);
  }
}

/** As `makeFolder`, at once. */
export function makeFolderSync(folder: string, root?: string, tries = mostTries): void {
  try {
    nodeFs.mkdirSync(folder);
  } catch (error) {
    if (!lacksParent(folder, error, root, tries)) return;
    makeFolderSync(dirname(folder), root);
    makeFolderSync(folder, root, tries - 1);
  }
}

/** Times that a folder is tried: another process may make the one around it, or remove it, at the same moment. */
const mostTries = 5;

/** Whether a folder could not be made for want of the one around it; false where it is there. Throws other errors as UserErrors. */
function lacksParent(folder: string, error: unknown, root: string | undefined, tries: number): boolean {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') return false;
  const parent = dirname(folder);
  if (code === 'ENOENT' && parent !== folder && parent !== root && tries > 1) return true;
  throw storeError('make', folder, error);
}

/** Bytes of a blob, without copying. Float32Arrays are taken as they lie in memory: little-endian on all platforms of Node. */
export function bytesOf(blob: Uint8Array | Int8Array | Float32Array): Uint8Array {
  return new Uint8Array(blob.buffer, blob.byteOffset, blob.byteLength);
}

const chunkBytes = 1 << 22;

/** The bytes of a file in order, at once or as they come. */
type Parts = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Writes all of `parts` to a new file, fsyncs it, and returns the sha256 (hex) and number of bytes written. */
export async function writeNewFile(
  file: string,
  parts: Parts,
  fs: FileSystem = fileSystem,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  const handle = await fs.open(file, 'wx', 0o644);
  try {
    for await (const part of parts) {
      // Small steps keep the event loop free between them, for the lease and for commands.
      for (let from = 0; from < part.length;) {
        const chunk = part.subarray(from, from + chunkBytes);
        const { bytesWritten } = await handle.write(chunk, 0, chunk.length);
        hash.update(chunk.subarray(0, bytesWritten));
        from += bytesWritten;
        bytes += bytesWritten;
      }
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Makes renames within a folder durable. Windows has no such call; its file system journals them. */
export async function syncFolder(folder: string, fs: FileSystem = fileSystem): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await fs.open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Puts a file in place at once, old or new. Errors are UserErrors; the temporary file is removed. */
export async function replaceFile(file: string, parts: Parts | string, fs: FileSystem = fileSystem): Promise<void> {
  const temporary = temporaryName(file);
  try {
    await writeNewFile(temporary, typeof parts === 'string' ? [Buffer.from(parts)] : parts, fs);
    await fs.rename(temporary, file);
    await syncFolder(dirname(file), fs);
  } catch (error) {
    await fs.rm(temporary, { force: true }).catch(() => undefined);
    throw storeError('write', file, error);
  }
}

/** A name beside `file` that no other writer uses. Never reaches results. */
const temporaryName = (file: string): string =>
  join(dirname(file), `.tmp-${basename(file)}-${randomBytes(6).toString('hex')}`);

/** Whether `name` is that of a file on its way to replace another. */
export const isTemporary = (name: string): boolean => name.startsWith('.tmp-');

/**
 * sha256 (hex) and number of the bytes of a regular file, of those before `to` where it is given, read in chunks. `within` is a folder that
 * no link may lead out of, by default the file's.
 */
export async function digestFile(
  file: string,
  { fs = fileSystem, within, to = Infinity }: { fs?: FileSystem; within?: string | null; to?: number } = {},
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(chunkBytes);
  const handle = await fs.open(regularTargetSync(file, within), readFlags);
  let bytes = 0;
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, to - bytes), bytes);
      if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
      hash.update(buffer.subarray(0, bytesRead));
      bytes += bytesRead;
    }
  } finally {
    await handle.close();
  }
}
