// Messages between the extension host and the run table. The host sends the summaries of all runs. The page requests
// the values of the columns that it shows, sorts or filters by, for some runs at a time; the host reads the metrics of
// a run again only if they have changed. Labels and notes are written by the host into the run folders.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { RunColour } from '../run-data/run-colour';
import type { Cell } from '../run-data/table-columns';
import type { RunSummary } from './page-state';

/** What the table shows, as stored in a saved view. */
export interface RunTableLayout {
  /** Identifiers of the columns (run-data/table-columns.ts); null selects the default columns. */
  readonly columns: readonly string[] | null;
  /** Sort order (run-data/run-order.ts). */
  readonly sort: readonly string[];
  /** Column by which runs are grouped; null without groups. */
  readonly group: string | null;
  /** Filter line (run-data/run-filter.ts). */
  readonly filter: string;
  /** Whether archived runs are shown. */
  readonly archived: boolean;
}

export interface RunTableView extends RunTableLayout {
  readonly name: string;
}

export interface RunTableSnapshot {
  /** All runs, newest first. */
  runs: RunSummary[];
  /** Keys of all configurations, in configuration order. */
  configKeys: string[];
  /** The keys among `configKeys` in which the runs differ. */
  variedKeys: string[];
  /** Meanings of metric keys (`parseMetricMeanings`). */
  meanings: Record<string, string>;
  /** Views saved in this workspace. */
  views: RunTableView[];
}

export const runTableReady: RequestType<null, RunTableSnapshot> = { method: 'runTable/ready' };

/** The values of one run, in the order of the requested columns. */
export interface RunCells {
  folder: string;
  values: Cell[];
  /** Why the metrics of the run cannot be read, in one sentence. */
  problem?: string;
}

/** Returns the values of columns for some runs, and the metric keys of these runs. */
export const runTableCells: RequestType<
  { folders: string[]; columns: string[] },
  { cells: RunCells[]; metricKeys: string[] }
> = { method: 'runTable/cells' };

/** Runs that are new, whose state changed or whose metrics may have grown, and folders of deleted runs. */
export const runTableChanged: NotificationType<{ runs: RunSummary[]; gone: string[] }> = { method: 'runTable/changed' };

/** Replaces the tags of a run. */
export const runTableTags: RequestType<{ folder: string; tags: string[] }, null> = { method: 'runTable/tags' };
/** Sets the colour of a run on all pages; null restores its own colour. */
export const runTableColour: RequestType<{ folder: string; colour: RunColour | null }, null> = {
  method: 'runTable/colour',
};
/** Returns the complete notes of a run. */
export const runTableNotes: RequestType<{ folder: string }, string> = { method: 'runTable/notes' };
/** Replaces the notes of a run. `before` is the text that the user has edited; the host refuses if it is outdated. */
export const runTableWriteNotes: RequestType<{ folder: string; before: string; text: string }, null> = {
  method: 'runTable/writeNotes',
};

export type RunTableAction =
  'dashboard' | 'compare' | 'stop' | 'archive' | 'unarchive' | 'delete' | 'export' | 'search';
/** Performs an action on runs. Actions that stop, hide or delete several runs ask for confirmation first. */
export const runTableAction: NotificationType<{ action: RunTableAction; folders: string[] }> = {
  method: 'runTable/action',
};

/** Saves a view under a name that the user enters; returns all views, or null if the user cancels. */
export const runTableSaveView: RequestType<
  { layout: RunTableLayout; name: string | null },
  { views: RunTableView[]; name: string } | null
> = { method: 'runTable/saveView' };
/** Deletes a saved view; returns the remaining views. */
export const runTableDeleteView: RequestType<{ name: string }, RunTableView[]> = { method: 'runTable/deleteView' };
/** Writes the table as CSV to a file that the user chooses. Returns false if the user cancels. */
export const runTableExport: RequestType<{ text: string }, boolean> = { method: 'runTable/export' };
