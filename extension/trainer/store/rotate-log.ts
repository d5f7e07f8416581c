// Keeps a log from growing without bound while other code holds it open: standard error of a process is its file descriptor for good, also
// for native code, so the file is not renamed, as libraries for rotation do, but copied aside and emptied. Whoever writes has opened it for
// appending and goes on at its new end. What is written between copy and cut is lost.
import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';

/** Bytes of a log beyond which it is set aside, and how many older parts are kept as `<file>.1` (the newest) and so on. */
export const logLimits = { mostBytes: 8 * 2 ** 20, kept: 4 };

/** Looks whether the log is too long, and sets it aside where it is. Never throws: a log is no reason for a run to end. */
export function rotateLog(file: string, { mostBytes, kept } = logLimits): void {
  const size = sizeOf(file);
  if (size <= mostBytes) return;
  const copy = `${file}.0`;
  try {
    copyFileSync(file, copy);
    for (let i = kept; i >= 1; i--) if (sizeOf(`${file}.${i - 1}`) >= 0) renameSync(`${file}.${i - 1}`, `${file}.${i}`);
  } catch {
    rmSync(copy, { force: true, recursive: true });
    if (size <= kept * mostBytes) return; // no room for a copy, or no permission: it may come
  }
  try {
    truncateSync(file, 0);
  } catch {
    // the next look tries again
  }
}

const sizeOf = (file: string): number => {
  try {
    return statSync(file).size;
  } catch {
    return -1;
  }
};
