// Opens files in folders of unknown origin. Accepts only regular files, because a pipe would block until a writer opens
// it, and a device may have no end. Links to regular files are accepted, because the hub cache consists of links.
// Opening does not block. The type is checked on the open file, because a path could change between check and opening.
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { readFrom, readFromSync } from './bounded-file';
import { UserError } from '../common/user-error';
import { fileSystem, storeError } from './files';
import type { FileSystem } from './files';

type Handle = Awaited<ReturnType<FileSystem['open']>>;

/** O_NONBLOCK does not exist on Windows, which has no pipes in its file system. */
const flags = constants.O_RDONLY | ((constants.O_NONBLOCK as number | undefined) ?? 0);

/** Maximum bytes of a file that is read at once; ten times the size of the largest tokenizers. */
const mostBytes = 2 ** 28;

interface Facts {
  size: number;
  isFile(): boolean;
  isDirectory(): boolean;
}

/** Opens a regular file for reading. @throws the system's error, or a UserError if it is not a regular file */
export async function openRegular(file: string, fs: FileSystem = fileSystem): Promise<Handle> {
  const handle = await fs.open(file, flags).catch((error: unknown) => {
    throw refusalOf(file, error);
  });
  try {
    checkRegular(file, await handle.stat());
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Returns the bytes of a regular file of at most 256 MiB. @throws like `openRegular`, and a UserError for a larger file
 */
export async function readRegular(file: string, fs: FileSystem = fileSystem): Promise<Buffer> {
  const handle = await openRegular(file, fs);
  try {
    return await readFrom(handle, checkedSize(file, await handle.stat()));
  } finally {
    await handle.close();
  }
}

/** Synchronous `readRegular`. */
export function readRegularSync(file: string): Buffer {
  const descriptor = openedSync(file);
  try {
    const facts = fstatSync(descriptor);
    checkRegular(file, facts);
    return readFromSync(descriptor, checkedSize(file, facts));
  } finally {
    closeSync(descriptor);
  }
}

function openedSync(file: string): number {
  try {
    return openSync(file, flags);
  } catch (error) {
    throw refusalOf(file, error);
  }
}

const appendFlags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | flags;

/**
 * Opens a regular file for appending, creating it if it is missing. Returns its descriptor.
 * @throws UserError if it is not a regular file
 */
export function openToAppendSync(file: string): number {
  const refused = () => new UserError(`store: cannot write ${file}: it is not a regular file: remove it`);
  let descriptor: number;
  try {
    descriptor = openSync(file, appendFlags, 0o644);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENXIO' || code === 'EISDIR') throw refused(); // a pipe without a reader, a socket, a folder
    throw storeError('write', file, error);
  }
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw refused();
}

function checkRegular(file: string, facts: Facts): void {
  if (facts.isDirectory()) throw Object.assign(new Error('it is a folder'), { code: 'EISDIR' });
  if (!facts.isFile()) throw notRegular(file);
}

const notRegular = (file: string): UserError =>
  new UserError(`store: cannot read ${file}: it is a pipe, a socket or a device: put a regular file there`);

/**
 * Returns the error for a failed open. A socket, or a device without a driver, already causes an error when it is
 * opened.
 */
const refusalOf = (file: string, error: unknown): unknown =>
  ['ENXIO', 'ENODEV', 'EOPNOTSUPP'].includes((error as NodeJS.ErrnoException).code ?? '') ? notRegular(file) : error;

function checkedSize(file: string, { size }: Facts): number {
  if (size > mostBytes)
    throw new UserError(
      `store: cannot read ${file}: it has ${size} bytes, more than the limit of ${mostBytes}: restore or download the file again`,
    );
  return size;
}
