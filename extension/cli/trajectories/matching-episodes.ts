// The episodes of a run that match a filter line, newest first. The filter has the same syntax as on the Episodes page.
// Only the episodes of one file are in memory at a time.
import { UserError } from '../../common/user-error';
import { parseFilter, rowTest, textTerms } from '../../run-data/episode-filter';
import { addToIndex, indexLine } from '../../run-data/episode-index-line';
import { EpisodeTable, type EpisodeRow } from '../../run-data/episode-table';
import type { Episode } from '../../run-data/episode';
import type { RunFolder } from '../../trainer/store/run-folder';
import { episodeFiles, episodesIn } from '../../trainer/store/stored-episodes';

export interface Found {
  row: EpisodeRow;
  episode: Episode;
}

/** Yields the episodes that match a filter line. @throws UserError for an invalid line */
export function* matchingEpisodes(folder: RunFolder, line: string): Generator<Found> {
  const { terms, problems } = parseFilter(line);
  if (problems.length > 0) throw new UserError(`filter: ${problems[0]}`);
  const texts = textTerms(terms).map(({ value, not }) => ({ value: value.toLowerCase(), not }));
  for (const file of episodeFiles(folder)) {
    const table = new EpisodeTable();
    const index = indexLine(file.mode, file.step, 0);
    const all = [...episodesIn(folder, file)];
    for (const { value, next } of all) addToIndex(index, value, next);
    table.addLine(index);
    const passes = rowTest(terms, table);
    for (const [row, { value: episode }] of all.entries()) {
      if (!passes(row)) continue;
      const text = texts.length === 0 ? '' : textOf(episode).toLowerCase();
      if (texts.every(({ value, not }) => text.includes(value) !== not)) yield { row: table.row(row), episode };
    }
  }
}

/** Returns the text in which `text:` terms are searched for: states, responses, the final state and the error. */
const textOf = ({ turns, final_state, error }: Episode): string =>
  [...turns.flatMap(({ state, raw }) => [state, raw]), final_state, error ?? ''].join('\n');
