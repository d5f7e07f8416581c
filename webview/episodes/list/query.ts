// The query of the list: parses the filter line and applies all terms that need only the columns of the table. The host
// searches the texts of the episodes for the remaining terms. Pure functions.
import { namesMode, parseFilter, rowTest, textTerms, type TextTerm } from '../../../extension/run-data/episode-filter';
import { sortRows } from './listing';
import { listedMode, type EpisodeData, type EpisodesSettings } from '../episodes-settings';

export interface Query {
  /** The rows that match all terms except `texts`, in list order. */
  readonly rows: Uint32Array;
  /** Number of episodes in the listed mode, before filtering. */
  readonly all: number;
  /** Terms that must be searched in the episodes' texts. */
  readonly texts: TextTerm[];
  /** Whether the filter line contains a term for training or validation; the mode setting then has no effect. */
  readonly namesMode: boolean;
  /** A sentence for each term that could not be parsed. */
  readonly problems: readonly string[];
}

export function queryOf(data: EpisodeData, settings: EpisodesSettings): Query {
  const { table, order } = data;
  const { terms, problems } = parseFilter(settings.filter);
  const byFilter = namesMode(terms);
  const mode = listedMode(data, settings);
  const wanted = byFilter || mode === 'all' ? null : Number(mode === 'val');
  const column = table.column('mode');
  const passes = rowTest(terms, table);
  let all = 0;
  const rows = order.filter(row => {
    if (wanted !== null && column[row] !== wanted) return false;
    all++;
    return passes(row);
  });
  return {
    rows: settings.sort ? sortRows(rows, table, settings.sort) : rows,
    all,
    texts: table.rows === 0 ? [] : textTerms(terms),
    namesMode: byFilter,
    problems,
  };
}
