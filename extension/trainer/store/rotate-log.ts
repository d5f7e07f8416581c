// Limits the size of a log that other code keeps open. Log rotation libraries rename a log, but native code, which
// writes to standard error, would continue to write to the renamed file. The log is therefore copied and then
// truncated. All writers have opened the log for appending, so they continue at the log's new end. Text that is written
// between copying and truncating is lost.
import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';

/** Maximum size of a log in bytes, and number of older parts: `<file>.1` (the newest) to `<file>.4`. */
export const logLimits = { mostBytes: 8 * 2 ** 20, kept: 4 };

/**
 * If the log exceeds the maximum size, copies it to `<file>.1` and empties it. Never throws, because a log must not end
 * a run.
 */
export function rotateLog(file: string, { mostBytes, kept } = logLimits): void {
  const size = sizeOf(file);
  if (size <= mostBytes) return;
  const copy = `${file}.0`;
  try {
    copyFileSync(file, copy);
    for (let i = kept; i >= 1; i--) if (sizeOf(`${file}.${i - 1}`) >= 0) renameSync(`${file}.${i - 1}`, `${file}.${i}`);
  } catch {
    rmSync(copy, { force: true, recursive: true });
    if (size <= kept * mostBytes) return; // a later call tries to copy the log again
  }
  try {
    truncateSync(file, 0);
  } catch {
    // The next call tries again.
  }
}

const sizeOf = (file: string): number => {
  try {
    return statSync(file).size;
  } catch {
    return -1;
  }
};
