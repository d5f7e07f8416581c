// The immutable state of the run table; only the reducer changes it.
import type { RunSummary } from '../../extension/protocol/page-state';
import type { RunTableLayout, RunTableView } from '../../extension/protocol/run-table-page';
import { parseColumn, type Cell } from '../../extension/run-data/table-columns';
import type { Theme } from '../shared/theme';

/** Settings that are restored when the page is shown again. */
export interface RunTableSettings {
  readonly layout: RunTableLayout;
  /** Name of the view that was applied last; null for the default. */
  readonly view: string | null;
}

/** A cell that the user edits. */
export interface Editing {
  readonly folder: string;
  readonly field: 'tags' | 'notes';
  /** The complete text before the change; null until the host has sent it. */
  readonly before: string | null;
}

/** Position of the visible rows. */
export interface Viewport {
  /** Index of the first row on screen. */
  readonly top: number;
  readonly rows: number;
}

export interface RunTableState {
  /** `failed` is the error message if the runs could not be read. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  /** All runs, newest first. */
  readonly runs: readonly RunSummary[];
  readonly configKeys: readonly string[];
  readonly variedKeys: readonly string[];
  readonly metricKeys: readonly string[];
  readonly meanings: Readonly<Record<string, string>>;
  readonly views: readonly RunTableView[];
  /** Values of configuration keys and metrics: by run folder, then by column. */
  readonly cells: ReadonlyMap<string, ReadonlyMap<string, Cell>>;
  /** Reasons why metrics cannot be read, by run folder. */
  readonly problems: ReadonlyMap<string, string>;
  /** Folders of runs whose values may have changed since they were requested. */
  readonly stale: ReadonlySet<string>;
  /** Whether a request for values is in flight; the next request is sent after its answer. */
  readonly asking: boolean;
  readonly selected: ReadonlySet<string>;
  /** The run whose check box was clicked last; the start of a range. */
  readonly anchor: string | null;
  /** Groups whose rows are hidden, by value. */
  readonly folded: ReadonlySet<Cell>;
  readonly viewport: Viewport;
  readonly editing: Editing | null;
  /** Whether the list of all columns is open, its search text, and the step of its columns “at step”. */
  readonly chooser: { readonly search: string; readonly step: number } | null;
  /** Message of a refused change; null after the next change. */
  readonly refusal: string | null;
  readonly settings: RunTableSettings;
  readonly theme: Theme;
}

export const firstLayout: RunTableLayout = { columns: null, sort: [], group: null, filter: '', archived: false };
export const firstSettings: RunTableSettings = { layout: firstLayout, view: null };

export const initialState = (settings: RunTableSettings, theme: Theme): RunTableState => ({
  connection: 'connecting',
  runs: [],
  configKeys: [],
  variedKeys: [],
  metricKeys: [],
  meanings: {},
  views: [],
  cells: new Map(),
  problems: new Map(),
  stale: new Set(),
  asking: false,
  selected: new Set(),
  anchor: null,
  folded: new Set(),
  viewport: { top: 0, rows: 40 },
  editing: null,
  chooser: null,
  refusal: null,
  settings,
  theme,
});

/** Returns the columns of the table. By default, these include the best validation success of up to two tags. */
export function shownColumns({ settings, metricKeys }: RunTableState): readonly string[] {
  const { columns } = settings.layout;
  if (columns) return columns.filter(id => id !== 'name' && parseColumn(id) !== null);
  const validation = metricKeys.filter(key => /^val-env\/[^/]+\/success$/.test(key)).slice(0, 2);
  const success = validation.length > 0 ? validation.map(key => `best(${key})`) : ['success'];
  return ['state', 'progress', ...success, 'reward', 'tags', 'notes', 'created'];
}

/** Whether two layouts show the same. */
export const sameLayout = (a: RunTableLayout, b: RunTableLayout): boolean =>
  JSON.stringify([a.columns, a.sort, a.group, a.filter, a.archived]) ===
  JSON.stringify([b.columns, b.sort, b.group, b.filter, b.archived]);
