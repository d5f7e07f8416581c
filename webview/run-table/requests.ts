// Which values the run table needs and has not yet requested; `page.ts` requests them. Pure functions.
import { filteredColumns } from '../../extension/run-data/run-filter';
import { parseSortKey } from '../../extension/run-data/run-order';
import { parseColumn } from '../../extension/run-data/table-columns';
import { listingOf, parsedFilter } from './listing';
import { shownColumns, type RunTableState } from './state';

/** Number of runs whose values are requested at a time. */
const chunk = 40;

/** Returns the next values to request: the runs in view first; null if all are known or a request is in flight. */
export function nextRequest(state: RunTableState): { folders: string[]; columns: string[] } | null {
  const { runs, cells, stale, asking, settings } = state;
  if (asking || runs.length === 0) return null;
  const { sort, group } = settings.layout;
  const needed = [
    ...shownColumns(state),
    ...sort.map(text => parseSortKey(text).by),
    ...(group === null ? [] : [group]),
    ...filteredColumns(parsedFilter(state)),
  ];
  const columns = [...new Set(needed)].filter(id => (parseColumn(id)?.kind ?? 'field') !== 'field');
  const lacks = (folder: string): boolean => {
    const known = cells.get(folder);
    return !known || stale.has(folder) || columns.some(id => !known.has(id));
  };
  const listed = listingOf(state).runs;
  const folders: string[] = [];
  for (const { folder } of [...listed, ...runs]) {
    if (folders.length >= chunk) break;
    if (!folders.includes(folder) && lacks(folder)) folders.push(folder);
  }
  return folders.length > 0 ? { folders, columns } : null;
}
