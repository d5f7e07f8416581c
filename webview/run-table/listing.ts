// The rows of the run table: the runs that pass the filter, in their order, below the headings of their groups. Each
// derived value is computed again only if its inputs have changed.
import type { RunSummary } from '../../extension/protocol/page-state';
import { columnResolver, parseColumn, type Cell } from '../../extension/run-data/table-columns';
import { parseRunFilter, passesFilter, type RunFilter } from '../../extension/run-data/run-filter';
import { groupRows, sortRows } from '../../extension/run-data/run-order';
import { latest } from '../shared/memoize-latest';
import { fieldCell, textsOf } from './cells';
import type { RunTableState } from './state';

export type TableItem =
  | { readonly kind: 'group'; readonly value: Cell; readonly runs: readonly RunSummary[]; readonly folded: boolean }
  | { readonly kind: 'run'; readonly run: RunSummary };

export interface Listing {
  readonly items: readonly TableItem[];
  /** The runs that pass the filter, in the order of the rows, also those of folded groups. */
  readonly runs: readonly RunSummary[];
  /** Number of runs before the filter; without archived runs if these are hidden. */
  readonly total: number;
}

const resolverOf = latest(columnResolver);
const filterOf = latest((line: string, configKeys: readonly string[], metricKeys: readonly string[]) =>
  parseRunFilter(line, resolverOf(configKeys, metricKeys)),
);

export const parsedFilter = ({ settings, configKeys, metricKeys }: RunTableState): RunFilter =>
  filterOf(settings.layout.filter, configKeys, metricKeys);

/** Returns the value of a run in a column; null while the host has not sent it. */
export function cellOf(cells: RunTableState['cells'], run: RunSummary, id: string): Cell {
  const column = parseColumn(id);
  if (column?.kind === 'field') return fieldCell(run, column.field);
  return cells.get(run.folder)?.get(id) ?? null;
}

export const listingOf = (state: RunTableState): Listing =>
  listed(state.runs, state.cells, parsedFilter(state), state.settings.layout, state.folded);

const listed = latest(
  (
    runs: readonly RunSummary[],
    cells: RunTableState['cells'],
    { terms }: RunFilter,
    { sort, group, archived }: RunTableState['settings']['layout'],
    folded: ReadonlySet<Cell>,
  ): Listing => {
    const open = archived ? runs : runs.filter(run => !run.archived);
    const cell = (run: RunSummary, id: string): Cell => cellOf(cells, run, id);
    const passing =
      terms.length === 0 ? open : open.filter(run => passesFilter(terms, textsOf(run), id => cell(run, id)));
    const sorted = sortRows(passing, sort, cell);
    const total = open.length;
    if (group === null) return { items: sorted.map(run => ({ kind: 'run', run })), runs: sorted, total };
    const groups = groupRows(sorted, run => cell(run, group));
    const items = groups.flatMap(({ value, rows }): TableItem[] => {
      const isFolded = folded.has(value);
      const heading: TableItem = { kind: 'group', value, runs: rows, folded: isFolded };
      return isFolded ? [heading] : [heading, ...rows.map((run): TableItem => ({ kind: 'run', run }))];
    });
    return { items, runs: groups.flatMap(({ rows }) => rows), total };
  },
);
