// Opens the files of data sets and models that a configuration names: regular files alone, also behind links. A pipe would wait for a writer
// for ever and a device has no end, so that neither is opened to be read. Opening does not wait.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** Windows has no such flag, and no pipes among its files. */
const flags = constants.O_RDONLY | ((constants.O_NONBLOCK as number | undefined) ?? 0);

/** Bytes of the largest text that Node.js can hold. */
const mostBytes = 2 ** 29 - 24;

/** A descriptor of a regular file, to be closed by the caller. @throws Error with a predicate, or the system's error */
export function openRegularFile(path: string): number {
  const descriptor = openSync(path, flags);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new Error('it is no regular file but a folder, a pipe or a device');
}

/** The text of a regular file of at most 512 MiB. @throws as `openRegularFile`, and for a larger one */
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
