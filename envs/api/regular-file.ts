// Opens the data set and model files that a configuration names, following links. Only regular files are opened:
// reading a pipe would block until something writes to it, and a device has no end. Opening never blocks.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** O_NONBLOCK is undefined on Windows, which has no pipes in its file system. */
const flags = constants.O_RDONLY | ((constants.O_NONBLOCK as number | undefined) ?? 0);

/** Maximum size in bytes of a string in Node.js. */
const mostBytes = 2 ** 29 - 24;

/**
 * Opens a regular file and returns its descriptor, which the caller closes. @throws Error with a predicate as its
 * message, or the system's error
 */
export function openRegularFile(path: string): number {
  const descriptor = openSync(path, flags);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new Error('it is a folder, a pipe or a device instead of a regular file');
}

/** The text of a regular file of at most 512 MiB. @throws as `openRegularFile`, and Error for a larger file */
export function readRegularText(path: string): string {
  const descriptor = openRegularFile(path);
  try {
    const { size } = fstatSync(descriptor);
    if (size > mostBytes) throw new Error(`it has ${size} bytes, more than the ${mostBytes} that are read at once`);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}
