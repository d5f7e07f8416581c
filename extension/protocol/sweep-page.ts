// Messages between the extension host and the Sweep page. The host joins the sweep's file (run-data/sweep-file.ts) with
// the runs of the workspace; the page computes the statistics over seeds.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { PointStop } from '../run-data/sweep-file';
import type { RunSummary } from './page-state';

/** One run of the sweep, before or after it is created. */
export interface SweepCell {
  /** Index into the snapshot's `points`. */
  point: number;
  seed: number;
  /** Number of times that the sweep has started or resumed the run. */
  attempts: number;
  /** Why the run could not be started, or how its last attempt failed; absent if nothing failed. */
  problem?: string;
  /** Null before the run is created, and after its folder was deleted. */
  run: RunSummary | null;
  /** Last value of the metric; null without a value. */
  last: number | null;
  /** Best value of the metric so far; null without a value. */
  best: number | null;
}

export interface SweepSnapshot {
  id: string;
  /** Whether a process on this machine runs the sweep. */
  isRunning: boolean;
  /** Greatest number of runs at a time. */
  jobs: number;
  /** Steps at which the worst points are stopped; empty if no point is stopped early. */
  rungs: number[];
  points: { label: string; stopped: PointStop | null }[];
  cells: SweepCell[];
  /** Key of the metric of the cells' values; empty if no run has logged a metric. */
  metric: string;
  /** Metric keys of all runs. */
  keys: string[];
  meanings: Record<string, string>;
}

/**
 * Returns the sweep with the values of a metric; an unknown key stands for the validation success. Null if the sweep has
 * not been planned yet.
 */
export const sweepReady: RequestType<{ metric: string }, SweepSnapshot | null> = { method: 'sweep/ready' };

/** Reports that the sweep or one of its runs has changed. Sent at most once per second, while the page is visible. */
export const sweepChanged: NotificationType<null> = { method: 'sweep/changed' };

/** Continues the sweep in a terminal, or asks the process that runs it to stop after the current steps. */
export const sweepControl: RequestType<{ action: 'continue' | 'stop' }, null> = { method: 'sweep/control' };

/** Opens the dashboard of a run, the comparison of all runs, or the sweep's file. */
export const sweepOpen: NotificationType<{ dashboard: string } | 'comparison' | 'file'> = { method: 'sweep/open' };
