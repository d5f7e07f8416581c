// The episode scanner in its worker thread, from the built bundle: results, errors, replaced searches, and a new thread
// after one that died.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ThreadScanner } from '../../../../extension/vscode/run-files/episodes/thread-scanner';
import type { SearchFile } from '../../../../extension/vscode/run-files/episodes/episode-scan';
import { reinterpret } from '../../../support/partial';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
let scanner: ThreadScanner;
beforeEach(() => (scanner = new ThreadScanner(resolve('dist/episode-worker.cjs'))));
afterEach(() => scanner.dispose());

/** Writes a file with one line per text and returns its byte ranges. */
function fileWith(name: string, texts: string[], firstRow: number): SearchFile {
  const path = join(folder(), 'rollouts', name);
  mkdirSync(join(folder(), 'rollouts'), { recursive: true });
  const lines = texts.map(text => `${JSON.stringify({ state: text })}\n`);
  writeFileSync(path, lines.join(''));
  let at = 0;
  const starts = lines.map(line => (at += line.length) - line.length);
  return {
    path,
    at: Float64Array.from(starts),
    texts: Int32Array.from(lines.map(({ length }) => length)),
    rows: Int32Array.from(texts, (_, i) => firstRow + i),
  };
}
const noFindings = (): void => undefined;

it('searches in the worker and reports the rows with the share searched', async () => {
  const files = [fileWith('a.jsonl', ['apple', 'pear'], 0), fileWith('b.jsonl', ['pear', 'apple'], 2)];
  const found: number[] = [];
  const shares: number[] = [];
  const finished = await scanner.search(files, [{ value: 'apple', not: false }], (rows, share) => {
    found.push(...rows);
    shares.push(share);
  });
  expect([finished, found, shares.at(-1)]).toEqual([true, [0, 3], 1]);
});

it('ends a search that another one or `end` replaces', async () => {
  const files = Array.from({ length: 200 }, (_, i) => fileWith(`${i}.jsonl`, ['apple'], i));
  const terms = [{ value: 'apple', not: false }];
  const replaced = scanner.search(files, terms, noFindings);
  const found: number[] = [];
  const second = scanner.search(files.slice(0, 3), terms, rows => found.push(...rows));
  expect([await replaced, await second, found]).toEqual([false, true, [0, 1, 2]]);
  const ended = scanner.search(files, terms, noFindings);
  scanner.end();
  expect(await ended).toBe(false);
});

it('fails a request with the text of its error, and answers the next', async () => {
  const missing = { path: join(folder(), 'rollouts', 'missing.jsonl'), mode: 'train', step: 1 } as const;
  await expect(scanner.index(missing, 0)).rejects.toThrow(/missing\.jsonl/);
  const { path } = fileWith('c.jsonl', ['apple'], 0);
  expect(await scanner.index({ path, mode: 'train', step: 1 }, 0)).toMatchObject({ mode: 'train', step: 1 });
});

it('fails what waits when its thread ends, and starts another for the next request', async () => {
  const files = Array.from({ length: 200 }, (_, i) => fileWith(`${i}.jsonl`, ['apple'], i));
  const waiting = scanner.search(files, [], noFindings);
  const { worker } = reinterpret<{ thread: { worker: Worker } }>(scanner).thread;
  await worker.terminate();
  await expect(waiting).rejects.toThrow('The episode reader stopped unexpectedly: try again');
  expect(await scanner.search(files.slice(0, 1), [], noFindings)).toBe(true);
});
