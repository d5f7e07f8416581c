// Writes files atomically: after a crash or a full disk, a file has either its old or its new content. Writes a
// temporary file in the same folder, fsyncs it, renames it, and fsyncs the folder. File systems are injectable, so that
// tests can make any call fail. The package write-file-atomic is not used, because it cannot stream, does not fsync the
// folder and does not accept another file system.
import { createHash, randomBytes } from 'node:crypto';
import * as nodeFs from 'node:fs';
import * as nodeFsPromises from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readFlags, regularTargetSync } from './bounded-file';
import { UserError } from '../common/user-error';

/** Functions of node:fs/promises that are needed to write files. */
export type FileSystem = Pick<
  typeof nodeFsPromises,
  'open' | 'rename' | 'mkdir' | 'rm' | 'rmdir' | 'readdir' | 'readFile' | 'stat'
>;
/** Functions of node:fs for writes that must happen in order: small appends to logs, and writes of the lease file. */
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
  EIO: 'the disk reports an error: check the disk before you continue',
  ENOENT: 'it does not exist: check the path',
  ENOTDIR: 'a part of the path is not a folder: check the path',
  EISDIR: 'it is a folder: check the path',
};

/**
 * Error codes whose cause may disappear while the process runs, for example when space is freed, permissions are fixed,
 * or other programs close files.
 */
const passing = new Set([
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'EACCES',
  'EPERM',
  'EROFS',
  'EMFILE',
  'ENFILE',
  'EBUSY',
  'EAGAIN',
  'ENOMEM',
]);

/** Thrown if the system refused an operation that may succeed later. */
export class StoreRefusal extends UserError {}

/**
 * Returns the UserError for a failed file operation; it is a StoreRefusal if a retry may succeed. The message names the
 * file, the error code and the remedy. If `error` is a UserError, it is returned unchanged.
 */
export function storeError(doing: string, file: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = (code && remedies[code]) ?? `${message}: check the disk and the folder`;
  const Kind = code !== undefined && passing.has(code) ? StoreRefusal : UserError;
  return new Kind(`store: cannot ${doing} ${file}${code ? ` (${code})` : ''}: ${reason}`, { cause: error });
}

/**
 * Creates a folder and its missing parents. Node.js's option `recursive` is not used. With this option, Node.js reports
 * ENOENT even for some temporary failures, such as a file system that became read-only; a run would then end instead of
 * waiting. `root` is a parent that is never created, such as a run folder that the user may have moved away. Errors are
 * UserErrors.
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

/** Synchronous `makeFolder`. */
export function makeFolderSync(folder: string, root?: string, tries = mostTries): void {
  try {
    nodeFs.mkdirSync(folder);
  } catch (error) {
    if (!lacksParent(folder, error, root, tries)) return;
    makeFolderSync(dirname(folder), root);
    makeFolderSync(folder, root, tries - 1);
  }
}

/**
 * Maximum attempts per folder. Several may be needed, because another process may create or remove a parent between two
 * attempts.
 */
const mostTries = 5;

/**
 * Whether creating a folder failed because its parent is missing; false if the folder exists. Throws other errors as
 * UserErrors.
 */
function lacksParent(folder: string, error: unknown, root: string | undefined, tries: number): boolean {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') return false;
  const parent = dirname(folder);
  if (code === 'ENOENT' && parent !== folder && parent !== root && tries > 1) return true;
  throw storeError('make', folder, error);
}

/** Returns the bytes of a blob without copying. Float32Arrays are little-endian on all platforms of Node. */
export function bytesOf(blob: Uint8Array | Int8Array | Float32Array): Uint8Array {
  return new Uint8Array(blob.buffer, blob.byteOffset, blob.byteLength);
}

const chunkBytes = 1 << 22;

/** Bytes of a file in order, as a list or as a stream. */
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
      // Each write is small, so that this process can update its lease and handle commands between two writes.
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

/** Makes renames within a folder durable by fsync. Does nothing on Windows, whose file system journals renames. */
export async function syncFolder(folder: string, fs: FileSystem = fileSystem): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await fs.open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Replaces a file atomically. After an error, the temporary file is removed and a UserError is thrown. */
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

/** Returns a unique temporary name in the folder of `file`. */
const temporaryName = (file: string): string =>
  join(dirname(file), `.tmp-${basename(file)}-${randomBytes(6).toString('hex')}`);

/** Whether `name` is a temporary name created by `replaceFile`. */
export const isTemporary = (name: string): boolean => name.startsWith('.tmp-');

/**
 * Returns sha256 (hex) and byte count of a regular file, or of its bytes before offset `to`. Reads in chunks. Links
 * must not lead out of the folder `within`, which defaults to the folder of the file.
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
