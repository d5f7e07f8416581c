// A request to stop a sweep from another process, such as the editor: an empty file in the sweep's folder. A file works
// on every platform and on shared disks, unlike a signal.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sweepFiles } from '../../run-data/sweep-file';

const pollMs = 500;

/** Calls `onStop` once if the file appears. Removes the file now and at the end. Returns a function that ends the watch. */
export function watchStopRequest(folder: string, onStop: () => void): () => void {
  const file = join(folder, sweepFiles.stop);
  rmSync(file, { force: true });
  const timer = setInterval(() => {
    if (!existsSync(file)) return;
    clearInterval(timer);
    onStop();
  }, pollMs);
  return () => {
    clearInterval(timer);
    rmSync(file, { force: true });
  };
}
