// Opens the data files and model files that a configuration names; symbolic links are followed. Only regular files are
// opened, because reading a pipe may block forever and reading a device may never end. Opening a file does not block.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** O_NONBLOCK is undefined on Windows, where the file system contains no pipes. */
const flags = constants.O_RDONLY | ((constants.O_NONBLOCK as number | undefined) ?? 0);

/** Maximum bytes of a file that is read into a string: the maximum length of a string in Node.js. */
const mostBytes = 2 ** 29 - 24;

/**
 * Opens a regular file and returns its descriptor, which the caller closes.
 * @throws the system's error, or an Error whose message is a clause, such as "it is a folder"
 */
export function openRegularFile(path: string): number {
  const descriptor = openSync(path, flags);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new Error('the path is a folder, a pipe or a device instead of a regular file');
}

/**
 * Returns the text of a regular file.
 * @param most maximum bytes of the file; by default about 512 MiB
 * @throws the errors of `openRegularFile`, or an Error if the file is larger
 */
export const readRegularText = (path: string, most = mostBytes): string =>
  readRegularBytes(path, most).toString('utf8');

/**
 * Returns the bytes of a regular file.
 * @throws the errors of `openRegularFile`, or an Error if the file has more than `most` bytes
 */
export function readRegularBytes(path: string, most: number): Buffer {
  const descriptor = openRegularFile(path);
  try {
    const { size } = fstatSync(descriptor);
    if (size > most) throw new Error(`the file has ${size} bytes, more than the maximum of ${most}`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
