// Reads the episodes of a run folder: the list of its files, single episodes, and the table of all episodes. The table is
// built from the trainer's index where the index covers a file completely, else from the file itself. At most one
// episode is in memory at a time.
import { statSync } from 'node:fs';
import { addToIndex, indexLine, isIndexLine, type EpisodeIndexLine } from '../../run-data/episode-index-line';
import { EpisodeTable } from '../../run-data/episode-table';
import { episodeSchema, type Episode } from '../../run-data/episode';
import { episodeFile, episodesFile, runFiles } from '../../run-data/run-file-names';
import { jsonOrNothing } from '../../common/json';
import { namesInRunSync } from '../../node/read-run-file';
import { readLines, readValues } from './line-log';
import type { RunFolder } from './run-folder';

/** Mode and step of a file of episodes. */
export interface EpisodeFile {
  mode: 'train' | 'val';
  step: number;
}

/** Returns mode and step of each episode file, newest first. */
export function episodeFiles(folder: RunFolder): EpisodeFile[] {
  return namesInRunSync(folder.path, runFiles.episodes)
    .flatMap((name): EpisodeFile[] => {
      const [, kind, step] = /^(step|val)-(\d+)\.jsonl$/.exec(name) ?? [];
      return kind === undefined ? [] : [{ mode: kind === 'val' ? 'val' : 'train', step: Number(step) }];
    })
    .sort((a, b) => b.step - a.step || a.mode.localeCompare(b.mode));
}

/** Yields the episodes of a file, with the byte offset after each. */
export const episodesIn = (
  folder: RunFolder,
  { mode, step }: EpisodeFile,
): Generator<{ value: Episode; next: number }> =>
  readValues(folder.file(episodesFile(mode, step)), value => episodeSchema.parse(value));

/** Returns an episode by its id; null if the run has none with this id. */
export function findEpisode(folder: RunFolder, ref: EpisodeFile & { id: string }): Episode | null {
  const quoted = JSON.stringify(ref.id);
  for (const { text } of readLines(folder.file(episodeFile(ref)))) {
    if (!text.includes(quoted)) continue;
    const episode = episodeSchema.safeParse(jsonOrNothing(text)).data;
    if (episode?.id === ref.id) return episode;
  }
  return null;
}

/** Returns the table of all episodes of a run, oldest first. */
export function episodeTable(folder: RunFolder): EpisodeTable {
  const table = new EpisodeTable();
  const indexed = indexedFiles(folder);
  for (const file of episodeFiles(folder).reverse()) {
    const name = episodesFile(file.mode, file.step);
    const lines = indexed.get(name) ?? [];
    const to = lines.at(-1)?.to ?? 0;
    const isCovered =
      to === statSync(folder.file(name)).size && lines.every((line, i) => line.from === (lines[i - 1]?.to ?? 0));
    for (const line of isCovered ? lines : [scanned(folder, file)]) table.addLine(line);
  }
  return table;
}

/** Returns the lines of the trainer's index by file; empty without an index. */
function indexedFiles(folder: RunFolder): Map<string, EpisodeIndexLine[]> {
  const lines = new Map<string, EpisodeIndexLine[]>();
  for (const { text } of readLines(folder.file(runFiles.episodeIndex))) {
    const line = jsonOrNothing(text);
    if (!isIndexLine(line)) continue;
    const name = episodesFile(line.mode, line.step);
    const known = lines.get(name);
    if (known && line.from > 0) known.push(line);
    else lines.set(name, [line]); // a resume writes the lines of a file anew
  }
  return lines;
}

function scanned(folder: RunFolder, file: EpisodeFile): EpisodeIndexLine {
  const line = indexLine(file.mode, file.step, 0);
  for (const { value, next } of episodesIn(folder, file)) addToIndex(line, value, next);
  return line;
}
