// Reports changes to source files. An editor may save a file in one of three ways: write it in place, rename a new file
// over it, or delete and recreate it. Folders are watched instead of files, so that a file stays watched if it is
// replaced or briefly missing. Changes are batched, because one save causes several events.
import { watch, type FSWatcher } from 'chokidar';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { minimum } from '../common/lists';

/**
 * A batch ends after `quietMs` milliseconds without an event. It ends at the latest `longestMs` milliseconds after its
 * first event.
 */
const quietMs = 30;
const longestMs = 200;

/**
 * Maximum milliseconds from a file's modification time to the event that reports the save. If more time has passed, the
 * modification time is not the time of the save, for example because the file was copied with its old times.
 */
const believableMs = 10_000;

export interface SourceChange {
  /** Absolute paths of the changed files. */
  files: string[];
  /** Time of the first save in the batch, in milliseconds since 1970. */
  saved: number;
}

export class SourceWatcher {
  private files = new Set<string>();
  private readonly folders = new Set<string>();
  private everything = false;
  private changed = new Set<string>();
  private since = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly watcher: FSWatcher;

  constructor(private readonly onChange: (change: SourceChange) => void) {
    const ignored = (path: string, stats?: { isFile(): boolean }) =>
      stats?.isFile() === true && !this.files.has(path) && !/\.([cm]?[jt]sx?|json)$/.test(path);
    this.watcher = watch([], { ignoreInitial: true, depth: 0, ignored });
    this.watcher.on('all', (event, path) => this.see(event, path));
    this.watcher.on('error', () => undefined); // a folder that cannot be watched reports no changes
  }

  /** Replaces the watched files. With `everything`, all other source files in their folders are watched too. */
  watch(files: Iterable<string>, everything: boolean): void {
    this.files = new Set(files);
    this.everything = everything;
    const folders = new Set([...this.files].map(dirname));
    for (const folder of this.folders) if (!folders.has(folder)) this.watcher.unwatch(folder);
    for (const folder of folders) if (!this.folders.has(folder)) this.watcher.add(folder);
    this.folders.clear();
    for (const folder of folders) this.folders.add(folder);
  }

  async close(): Promise<void> {
    clearTimeout(this.timer);
    await this.watcher.close();
  }

  private see(event: string, path: string): void {
    if (event === 'addDir' && this.folders.has(path)) {
      this.watcher.unwatch(path); // a recreated folder needs a new watch
      this.watcher.add(path);
    } else if (!this.files.has(path) && !(this.everything && event !== 'unlinkDir')) return;
    const now = Date.now();
    if (this.changed.size === 0) this.since = now;
    this.changed.add(path);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.report(), Math.max(0, Math.min(quietMs, this.since + longestMs - now)));
  }

  private async report(): Promise<void> {
    const [files, since] = [[...this.changed], this.since];
    this.changed = new Set();
    const times = await Promise.all(
      files.map(file =>
        stat(file).then(
          ({ mtimeMs }) => mtimeMs,
          () => since,
        ),
      ),
    );
    const recent = times.filter(time => time <= since && since - time < believableMs);
    this.onChange({ files, saved: minimum(recent, since) });
  }
}
