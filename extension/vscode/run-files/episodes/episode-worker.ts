// Entry of the worker thread that scans episode files, so that the extension host is never blocked by a gigabyte of
// data. A search stops between two files when it is replaced or cancelled.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import type { EpisodeIndexLine } from '../../../run-data/episode-index-line';
import type { TextTerm } from '../../../run-data/episode-filter';
import { appendAll } from '../../../common/lists';
import { indexOfFile, searchFile, textPatterns, type ScanFile, type SearchFile } from './episode-scan';

/** Milliseconds between two partial answers. */
const partMs = 80;

export type WorkerAsk =
  | { id: number; index: { file: ScanFile; from: number } }
  | { id: number; search: { files: SearchFile[]; terms: TextTerm[] } }
  | { id: number; end: true };
export type WorkerAnswer =
  | { id: number; line: EpisodeIndexLine }
  | { id: number; found: Int32Array; share: number }
  | { id: number; done: boolean }
  | { id: number; error: string };

const port = parentPort;
if (!port) throw new Error('episode worker: must be started as a worker thread');
const answer = (message: WorkerAnswer) => port.postMessage(message);
/** Id of the active search. */
let wanted = -1;

port.on('message', (ask: WorkerAsk) => {
  if ('search' in ask) wanted = ask.id;
  if ('end' in ask) wanted = -1;
  work(ask).catch((error: unknown) => answer({ id: ask.id, error: (error as Error).message }));
});

async function work(ask: WorkerAsk): Promise<void> {
  if ('index' in ask) return answer({ id: ask.id, line: indexOfFile(ask.index.file, ask.index.from) });
  if ('end' in ask) return;
  const { files, terms } = ask.search;
  const patterns = textPatterns(terms);
  let found: number[] = [];
  let reportedAt = performance.now();
  for (const [i, file] of files.entries()) {
    if (wanted !== ask.id) return answer({ id: ask.id, done: false });
    appendAll(found, searchFile(file, patterns));
    if (performance.now() - reportedAt < partMs && i < files.length - 1) {
      if (i % 4 === 3) await yieldToEventLoop();
      continue;
    }
    answer({ id: ask.id, found: Int32Array.from(found), share: (i + 1) / files.length });
    [found, reportedAt] = [[], performance.now()];
    await yieldToEventLoop(); // lets messages be processed
  }
  answer({ id: ask.id, done: true });
}
