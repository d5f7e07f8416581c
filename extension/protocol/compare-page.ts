// Messages between the extension host and the page that compares runs. The host groups runs and finds the configuration
// keys in which the groups differ. The page requests the columns of the visible charts and computes the statistics over
// seeds.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { ChartPlan } from '../../envs/api/plugins/chart';
import type { ComparedGroup } from '../run-data/compared-runs';
import type { MarkedEvent } from '../run-data/event-marks';
import type { RunColour } from '../run-data/run-colour';
import type { RunSummary } from './page-state';

export interface CompareSnapshot {
  /** All compared runs, oldest first. */
  runs: { run: RunSummary; seed: string; keys: string[]; marks: MarkedEvent[] }[];
  groups: ComparedGroup[];
  /** Configuration keys in which the groups differ. */
  keys: string[];
  meanings: Record<string, string>;
  /** Charts of plug-ins (own-charts.ts), whose computed lines have their titles and units. */
  own: readonly ChartPlan[];
}

export const compareReady: RequestType<null, CompareSnapshot> = { method: 'compare/ready' };

/** Returns, for each run of the snapshot, the requested columns; a column that the run lacks is omitted. */
export const compareColumns: RequestType<
  { keys: string[] },
  { steps: Float64Array; columns: Record<string, Float64Array> }[]
> = { method: 'compare/columns' };

/**
 * Reports that a run has new data or a new state. The page then requests the snapshot and the columns again. Sent at
 * most once per second.
 */
export const compareGrew: NotificationType<null> = { method: 'compare/grew' };

/** Sets the colour of runs on all pages; null restores their own colours. */
export const compareColour: RequestType<{ folders: string[]; colour: RunColour | null }, null> = {
  method: 'compare/colour',
};

/** Opens a run's dashboard, or the diff of two runs' configurations. Runs are identified by folder. */
export const compareOpen: NotificationType<{ dashboard: string } | { difference: [string, string] }> = {
  method: 'compare/open',
};
