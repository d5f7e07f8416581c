// Limits the size of a log that other code keeps open. A process's standard error is a fixed file descriptor, also used
// by native code, so the file is not renamed, as log rotation libraries do, but copied and truncated. Writers opened it
// for appending and continue at its new end. Text written between copy and truncation is lost.
import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';

/**
 * Size in bytes above which a log is set aside, and the number of older parts kept as `<file>.1` (the newest) and so
 * on.
 */
export const logLimits = { mostBytes: 8 * 2 ** 20, kept: 4 };

/** Sets the log aside if it is too long. Never throws: a log must not end a run. */
export function rotateLog(file: string, { mostBytes, kept } = logLimits): void {
  const size = sizeOf(file);
  if (size <= mostBytes) return;
  const copy = `${file}.0`;
  try {
    copyFileSync(file, copy);
    for (let i = kept; i >= 1; i--) if (sizeOf(`${file}.${i - 1}`) >= 0) renameSync(`${file}.${i - 1}`, `${file}.${i}`);
  } catch {
    rmSync(copy, { force: true, recursive: true });
    if (size <= kept * mostBytes) return; // no space or permission for a copy; this may change
  }
  try {
    truncateSync(file, 0);
  } catch {
    // the next call retries
  }
}

const sizeOf = (file: string): number => {
  try {
    return statSync(file).size;
  } catch {
    return -1;
  }
};
