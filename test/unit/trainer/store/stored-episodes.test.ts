// Episodes of a run folder: the table from the index equals the table from the files, and damaged indexes are not used.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { addToIndex, indexLine } from '../../../../extension/run-data/episode-index-line';
import { pickEpisodes } from '../../../../extension/run-data/picked-episodes';
import { runFiles } from '../../../../extension/run-data/run-file-names';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import {
  episodeFiles,
  episodesIn,
  episodeTable,
  findEpisode,
} from '../../../../extension/trainer/store/stored-episodes';
import { restoreRun } from '../../../e2e/fixtures/stored-run.mjs';
import { temporaryFolder } from '../../../support/temporary-folder';

const workspace = temporaryFolder();

const rowsOf = (run: RunFolder): unknown[] => {
  const table = episodeTable(run);
  return Array.from({ length: table.rows }, (_, row) => table.row(row));
};

/** Writes the index as the trainer does; `wrong` changes a score, so that a read index can be recognised. */
function writeIndex(run: RunFolder, wrong = 0): void {
  const lines = episodeFiles(run).map(file => {
    const line = indexLine(file.mode, file.step, 0);
    for (const { value, next } of episodesIn(run, file))
      addToIndex(line, { ...value, score: value.score + wrong }, next);
    return `${JSON.stringify(line)}\n`;
  });
  writeFileSync(join(run.path, runFiles.episodeIndex), lines.join(''));
}

it('are read from files without an index, and from an index that covers the files', () => {
  const run = RunFolder.open(restoreRun(workspace(), 'lake-run'));
  const scanned = rowsOf(run);
  expect(scanned.length).toBeGreaterThan(20);
  writeIndex(run);
  expect(rowsOf(run)).toEqual(scanned);
  writeIndex(run, 7);
  expect(rowsOf(run)).not.toEqual(scanned);
});

it('are scanned if the index covers only a part, or is damaged', () => {
  const run = RunFolder.open(restoreRun(workspace(), 'lake-run'));
  const scanned = rowsOf(run);
  writeIndex(run, 7);
  const [newest] = episodeFiles(run);
  const [first] = episodesIn(run, newest);
  const name = join(
    run.path,
    'episodes',
    `${newest.mode === 'val' ? 'val' : 'step'}-${String(newest.step).padStart(6, '0')}.jsonl`,
  );
  writeFileSync(name, `${JSON.stringify(first.value)}\n`);
  expect(rowsOf(run).at(-1)).toMatchObject({ id: first.value.id, score: first.value.score });
  writeFileSync(join(run.path, runFiles.episodeIndex), 'nonsense\n{}\n');
  expect(rowsOf(run).length).toBeLessThan(scanned.length + 1);
  expect(pickEpisodes(episodeTable(run)).length).toBeGreaterThan(0);
});

it('are found by their ids', () => {
  const run = RunFolder.open(restoreRun(workspace(), 'lake-run'));
  const [file] = episodeFiles(run);
  const all = [...episodesIn(run, file)].map(({ value }) => value);
  const wanted = all[all.length - 1];
  expect(findEpisode(run, { ...file, id: wanted.id })).toEqual(wanted);
  expect(findEpisode(run, { ...file, id: `${wanted.id}9` })).toBeNull();
  rmSync(join(run.path, 'episodes'), { recursive: true });
  expect(episodeTable(run).rows).toBe(0);
  expect(findEpisode(run, { ...file, id: wanted.id })).toBeNull();
});
