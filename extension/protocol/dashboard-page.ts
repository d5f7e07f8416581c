// Messages between the extension host and a run's dashboard. The host owns the metrics and reads them by columns. The
// page requests the columns of the visible charts, first as an overview if the run is long, then in full. Typed arrays
// are sent as they are.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { CurvePoints } from '../common/curves';
import type { MetricNumbers } from '../run-data/metric-segments';
import type { RunSummary } from './pages';
import type { RunEvent } from '../run-data/run-events';

export interface DashboardSnapshot {
  run: RunSummary;
  /** Row numbers are valid within an epoch. A resume that truncates the metrics starts a new epoch. */
  epoch: number;
  /** Steps of the rows, as ranges of consecutive steps. */
  steps: [first: number, count: number][];
  /** Keys that occur in any row, in order of first occurrence, without `step`. */
  keys: string[];
  /**
   * Share of the metrics that has been read, 0…1. Below 1 the rows are only the newest part, and `dashboardRead`
   * reports progress.
   */
  read: number;
  events: RunEvent[];
  /** One sentence by metric key or pattern, from docs/METRICS.md (`parseMetricMeanings`). */
  meanings: Record<string, string>;
  /** View settings last used in this workspace, for a page that has none of its own. */
  view: unknown;
  /** Configured number of episodes, for runs that do not log it: per training step, and per validation by tag. */
  episodes: { train: number | null; val: Record<string, number> };
  /** Whether the run records score distributions. */
  scored: boolean;
}

/** A column: all rows of the run, or an overview with its smoothed form. */
export type ColumnPart =
  { kind: 'whole'; values: Float64Array } | { kind: 'overview'; points: CurvePoints; smoothed: CurvePoints | null };

export const dashboardReady: RequestType<null, DashboardSnapshot> = { method: 'dashboard/ready' };

/** Columns of the given epoch. With `overview`, long columns are reduced, and smoothed by `smoothing` (0: off). */
export const dashboardColumns: RequestType<
  { epoch: number; keys: string[]; overview: boolean; smoothing: number },
  { epoch: number; rows: number; columns: Record<string, ColumnPart> }
> = { method: 'dashboard/columns' };

/** New lines since the last message, in order; empty if only the status changed. */
export const dashboardLines: NotificationType<{ run: RunSummary; lines: MetricNumbers[]; events: RunEvent[] }> = {
  method: 'dashboard/lines',
};

/** More of the metrics has been read, 0…1. At 1 the page requests the data again. */
export const dashboardRead: NotificationType<{ read: number }> = { method: 'dashboard/read' };

/**
 * Distribution of a tag's scores over steps: `counts[column * bins + bin]` is the number of episodes in a range of
 * steps and a range of scores.
 */
export interface ScoreStrip {
  tag: string;
  low: number;
  high: number;
  columns: number;
  bins: number;
  counts: Float32Array;
  /** Minimum and maximum score of each bin over the whole run. If they are equal, the bin holds only that score. */
  lowest: Float64Array;
  highest: Float64Array;
}

/**
 * Column of a step in strips over [from, to]. The multiplication comes before the division so that rounding skips no
 * column when there is one per step.
 */
export const scoreColumn = (step: number, from: number, to: number, columns: number): number =>
  Math.max(0, Math.min(columns - 1, Math.floor(((step - from) * columns) / Math.max(1, to - from + 1))));

/** Score strips over steps [from, to] with the given number of columns, one per tag. */
export const dashboardScores: RequestType<{ from: number; to: number; columns: number }, ScoreStrip[]> = {
  method: 'dashboard/scores',
};

/** Data to write to a file that the user names: a chart image, or rows of metrics by row number [from, to). */
export type Export =
  | { kind: 'picture'; name: string; format: 'png' | 'svg'; bytes: Uint8Array }
  | { kind: 'csv'; name: string; keys: string[]; from: number; to: number };

/** Returns whether the file was written; false if the user cancelled. */
export const dashboardExport: RequestType<Export, boolean> = { method: 'dashboard/export' };

/** The page's view settings changed. They are stored for later pages of this workspace. */
export const dashboardView: NotificationType<{ view: unknown }> = { method: 'dashboard/view' };

export const dashboardCommand: NotificationType<{
  command: 'pause' | 'resume' | 'stop' | 'settings' | 'episodes' | 'collapse' | 'log';
}> = {
  method: 'dashboard/command',
};
