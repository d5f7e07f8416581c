// Entry of the worker thread that scans episode files, so that a scan of a gigabyte does not block the extension host.
// A replaced or cancelled search ends after the current file.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import type { EpisodeIndexLine } from '../../../run-data/episode-index-line';
import type { TextTerm } from '../../../run-data/episode-filter';
import { appendAll } from '../../../common/lists';
import { serveCalls } from '../../../node/thread-calls';
import { indexOfFile, searchFile, textPatterns, type ScanFile, type SearchFile } from './episode-scan';

/** Milliseconds between two notifications with found rows. */
const partMs = 80;

/** Functions of this worker; see EpisodeScanner. */
export interface EpisodeScans {
  index(file: ScanFile, from: number): EpisodeIndexLine;
  /** Searches texts; `id` identifies the search in `found` notifications. */
  search(id: number, files: SearchFile[], terms: TextTerm[]): Promise<boolean>;
  end(): void;
}
/** Functions of the thread that started the worker. */
export interface EpisodeFindings {
  found(id: number, rows: Int32Array, share: number): void;
}

const port = parentPort;
if (!port) throw new Error('episode worker: must be started as a worker thread');
/** Id of the active search; −1 if no search is active. */
let wanted = -1;
const scans: EpisodeScans = {
  index: indexOfFile,
  search,
  end: () => {
    wanted = -1;
  },
};
const report = serveCalls<EpisodeFindings>(port, scans);

async function search(id: number, files: SearchFile[], terms: TextTerm[]): Promise<boolean> {
  wanted = id;
  const patterns = textPatterns(terms);
  let found: number[] = [];
  let reportedAt = performance.now();
  for (const [i, file] of files.entries()) {
    if (wanted !== id) return false;
    appendAll(found, searchFile(file, patterns));
    if (performance.now() - reportedAt < partMs && i < files.length - 1) {
      if (i % 4 === 3) await yieldToEventLoop();
      continue;
    }
    report('found', id, Int32Array.from(found), (i + 1) / files.length);
    [found, reportedAt] = [[], performance.now()];
    await yieldToEventLoop(); // lets the thread process a cancellation
  }
  return true;
}
