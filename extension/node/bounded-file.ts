// Reads untrusted files, such as configurations and the files of run folders. Opens only regular files: a pipe or
// device could block a thread or deliver endless data. A read may be limited to one folder; then no link may lead out
// of this folder. Every read and listing is bounded in size, and asynchronous reads have a deadline. The error for a
// refused file names the file, its type and the remedy. Must not import `vscode`.
import { closeSync, constants, fstatSync, lstatSync, openSync, opendirSync, readSync, realpathSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, open, opendir, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { UserError } from '../common/user-error';

/**
 * Thrown if a file exists but is refused. There are four reasons: the file is not a regular file, it is too large, it
 * is a link out of the allowed folder, or reading it took too long.
 */
export class RefusedFile extends UserError {}

export interface Bounds {
  /** Maximum size in bytes; a larger file is refused. */
  most: number;
  /**
   * Folder that no link may lead out of; defaults to the folder of the file. Null allows all links. Use null only for
   * files that the user created.
   */
  within?: string | null;
  /** Time limit of an asynchronous read in milliseconds. */
  timeoutMs?: number;
}

export interface FolderEntry {
  name: string;
  /** `other` for links and special files. */
  kind: 'file' | 'folder' | 'other';
}

const defaultTimeoutMs = 10_000;

// O_NONBLOCK prevents blocking if a pipe has replaced the file after its type was checked. Windows has neither
// O_NONBLOCK nor O_NOFOLLOW.
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;
/** Flags that open a file for reading without blocking and without following a link. */
export const readFlags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW;

/**
 * Opens a regular file for reading. `within` is the folder that no link may lead out of; null allows all links.
 * @throws RefusedFile, or the system's error if the file is missing or unreadable
 */
export async function openRegular(
  path: string,
  within: string | null = dirname(path),
  timeoutMs = defaultTimeoutMs,
): Promise<FileHandle> {
  return withDeadline(path, timeoutMs, opened(path, within), handle => void handle.close().catch(() => undefined));
}

async function opened(path: string, within: string | null): Promise<FileHandle> {
  refuseOther(path, await lstat(path), true);
  const target = await realpath(path);
  if (within !== null) refuseOutside(path, target, await realpath(within));
  refuseOther(path, await lstat(target), false);
  const handle = await open(target, readFlags);
  try {
    refuseOther(path, await handle.stat(), false);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Synchronous `openRegular`; returns a file descriptor. Blocks the thread if the file system does not respond. */
export function openRegularSync(path: string, within: string | null = dirname(path)): number {
  const fd = openSync(regularTargetSync(path, within), readFlags);
  try {
    refuseOther(path, fstatSync(fd), false);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Returns the real path of a regular file.
 * @throws like `openRegular`
 */
export function regularTargetSync(path: string, within: string | null = dirname(path)): string {
  refuseOther(path, lstatSync(path), true);
  const target = realpathSync.native(path);
  if (within !== null) refuseOutside(path, target, realpathSync.native(within));
  refuseOther(path, lstatSync(target), false);
  return target;
}

/**
 * Returns all bytes of a regular file, up to the size that it had when it was opened.
 * @throws like `openRegular`, and RefusedFile if the file is larger than `most`
 */
export async function readBounded(path: string, bounds: Bounds): Promise<Buffer> {
  const { most, within, timeoutMs = defaultTimeoutMs } = bounds;
  const handle = await openRegular(path, within, timeoutMs);
  const read = async (): Promise<Buffer> => {
    try {
      const { size } = await handle.stat();
      refuseLarger(path, size, most);
      return await readFrom(handle, size);
    } finally {
      await handle.close();
    }
  };
  return withDeadline(path, timeoutMs, read());
}

/** Synchronous `readBounded`. */
export function readBoundedSync(path: string, { most, within }: Bounds): Buffer {
  const fd = openRegularSync(path, within);
  try {
    const { size } = fstatSync(fd);
    refuseLarger(path, size, most);
    return readFromSync(fd, size);
  } finally {
    closeSync(fd);
  }
}

/** Maximum bytes per system call; the system accepts less than 2 GiB. */
const mostAtOnce = 2 ** 30;

/** Returns the first `size` bytes of an open file in a new buffer; fewer if the file is shorter. */
export async function readFrom(handle: Pick<FileHandle, 'read'>, size: number): Promise<Buffer> {
  const bytes = Buffer.from(new ArrayBuffer(size));
  for (let filled = 0; filled < size;) {
    const { bytesRead } = await handle.read(bytes, filled, Math.min(size - filled, mostAtOnce), filled);
    if (bytesRead === 0) return bytes.subarray(0, filled);
    filled += bytesRead;
  }
  return bytes;
}

/** Synchronous `readFrom`. */
export function readFromSync(fd: number, size: number): Buffer {
  const bytes = Buffer.from(new ArrayBuffer(size));
  for (let filled = 0; filled < size;) {
    const read = readSync(fd, bytes, filled, Math.min(size - filled, mostAtOnce), filled);
    if (read === 0) return bytes.subarray(0, filled);
    filled += read;
  }
  return bytes;
}

/**
 * Returns at most `most` entries of a folder, in file system order.
 * @throws RefusedFile if `folder` is not a folder, or if a link leads out of the allowed folder; the system's error if
 * `folder` is missing
 */
export async function listBounded(folder: string, { most, within, timeoutMs }: Bounds): Promise<FolderEntry[]> {
  const list = async (): Promise<FolderEntry[]> => {
    const target = await realpath(folder);
    if (within) refuseOutside(folder, target, await realpath(within));
    refuseNoFolder(folder, await lstat(target));
    const entries: FolderEntry[] = [];
    for await (const entry of await opendir(target, { bufferSize: 1024 })) {
      entries.push(entryOf(entry));
      if (entries.length >= most) break; // `break` closes the folder
    }
    return entries;
  };
  return withDeadline(folder, timeoutMs ?? defaultTimeoutMs, list());
}

/** Synchronous `listBounded`. */
export function listBoundedSync(folder: string, { most, within }: Bounds): FolderEntry[] {
  const target = realpathSync.native(folder);
  if (within) refuseOutside(folder, target, realpathSync.native(within));
  refuseNoFolder(folder, lstatSync(target));
  const entries: FolderEntry[] = [];
  const directory = opendirSync(target, { bufferSize: 1024 });
  try {
    for (let entry = directory.readSync(); entry && entries.length < most; entry = directory.readSync())
      entries.push(entryOf(entry));
    return entries;
  } finally {
    directory.closeSync();
  }
}

/** Whether an error means that the file is missing or that one of its parents is not a folder. */
export const isMissing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Throws RefusedFile for anything other than a regular file. With `links`, symbolic links are accepted too. */
function refuseOther(path: string, found: Stats, links: boolean): void {
  if (found.isFile() || (links && found.isSymbolicLink())) return;
  throw new RefusedFile(`${path} is ${kindOf(found)}, not a regular file: remove it`);
}

function refuseNoFolder(path: string, found: Stats): void {
  if (found.isDirectory()) return;
  throw new RefusedFile(`${path} is ${found.isFile() ? 'a file' : kindOf(found)}, not a folder: remove it`);
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a folder';
  if (found.isFIFO()) return 'a pipe';
  if (found.isSocket()) return 'a socket';
  return found.isSymbolicLink() ? 'a link' : 'a device';
}

function refuseOutside(path: string, target: string, root: string): void {
  if (target === root || target.startsWith(root.endsWith(sep) ? root : root + sep)) return;
  throw new RefusedFile(
    `${path} is a link to ${resolve(target)}, which is outside ${root}: replace the link with its target`,
  );
}

function refuseLarger(path: string, size: number, most: number): void {
  if (size <= most) return;
  throw new RefusedFile(
    `${path} has ${size} bytes, more than the limit of ${most} bytes for this file: remove the file`,
  );
}

function entryOf(entry: { name: string; isFile(): boolean; isDirectory(): boolean }): FolderEntry {
  return { name: entry.name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other' };
}

/**
 * Returns the result of `work`; throws RefusedFile after `timeoutMs`. If `work` ends after the timeout, its result is
 * passed to `late`.
 */
async function withDeadline<T>(
  path: string,
  timeoutMs: number,
  work: Promise<T>,
  late: (result: T) => void = () => undefined,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      over = true;
      reject(new RefusedFile(`${path} was not read within ${timeoutMs / 1000} s: check the disk or the network drive`));
    }, timeoutMs);
  });
  work.then(
    result => over && late(result),
    () => undefined, // Promise.race reports the error
  );
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
