// Messages between the extension host and the page that compares runs. The host says which runs stand together and in which keys of the
// configuration they differ; the page asks for the columns of the charts that are on screen and owns the statistics over seeds.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { RunSummary } from './pages';

/** Runs of one configuration, which differ in their seeds alone. */
export interface ComparedGroup {
  label: string;
  /** Places in the snapshot's runs, oldest first. */
  members: number[];
  /** The values of the snapshot's keys, as text. */
  values: string[];
}

export interface CompareSnapshot {
  /** Oldest first. */
  runs: { run: RunSummary; seed: string; keys: string[] }[];
  groups: ComparedGroup[];
  /** Keys of the configuration in which the groups differ. */
  keys: string[];
  meanings: Record<string, string>;
}

export const compareReady: RequestType<null, CompareSnapshot> = { method: 'compare/ready' };

/** Columns of each run of the snapshot; a key that a run has not is left out. */
export const compareColumns: RequestType<
  { keys: string[] },
  { steps: Float64Array; columns: Record<string, Float64Array> }[]
> = { method: 'compare/columns' };

/** A run has more, or stands otherwise: the page asks anew. At most once a second. */
export const compareGrew: NotificationType<null> = { method: 'compare/grew' };

/** Opens a run's dashboard, or the difference of two runs' configurations; runs by their folders. */
export const compareOpen: NotificationType<{ dashboard: string } | { difference: [string, string] }> = {
  method: 'compare/open',
};
