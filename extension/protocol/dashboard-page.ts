// Messages between the extension host and a run's dashboard. The host reads the metrics as columns. The page requests
// the columns of the visible charts; for long runs it first requests a reduced overview, then the full columns. Typed
// arrays are sent without conversion.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { CurvePoints } from '../common/curves';
import type { MetricNumbers } from '../run-data/metric-segments';
import type { ConfiguredEpisodes } from '../run-data/configured-episodes';
import type { PickedEpisode } from '../run-data/picked-episodes';
import type { RedundantColumns } from '../run-data/redundant-columns';
import type { RunSummary } from './page-state';
import type { RunEnding } from '../run-data/run-ending';
import type { RunEvent } from '../run-data/run-events';

export interface DashboardSnapshot {
  run: RunSummary;
  /** Row numbers are valid within an epoch. A resume that truncates the metrics starts a new epoch. */
  epoch: number;
  /** Steps of the rows, as ranges of consecutive steps. */
  steps: [first: number, count: number][];
  /** Keys, other than `step`, that occur in at least one row, in the order of their first occurrence. */
  keys: string[];
  /**
   * Share of the metrics that has been read, 0…1. Below 1, only the newest rows are available, and `dashboardRead`
   * reports progress.
   */
  read: number;
  events: RunEvent[];
  /** Meaning of each metric key or pattern in one sentence, from docs/METRICS.md (`parseMetricMeanings`). */
  meanings: Record<string, string>;
  /** View settings that were last used in this workspace. A page without saved settings uses them as defaults. */
  view: unknown;
  /** Configured numbers of episodes. */
  episodes: ConfiguredEpisodes;
  /** Summary of a run that has ended; null for other runs, and until all metrics are read. */
  ending: RunEnding | null;
  /** Whether the run records score distributions. */
  scored: boolean;
  /** Constant and equal metrics, which the page hides until they are asked for. */
  redundant: RedundantColumns;
}

/** A column: all rows of the run, or a reduced overview with and without smoothing. */
export type ColumnPart =
  { kind: 'whole'; values: Float64Array } | { kind: 'overview'; points: CurvePoints; smoothed: CurvePoints | null };

export const dashboardReady: RequestType<null, DashboardSnapshot> = { method: 'dashboard/ready' };

/**
 * Returns columns of the given epoch. If `overview` is true, long columns are reduced. If `smoothing` is not 0, each
 * reduced column is returned twice: without smoothing, and smoothed with this weight.
 */
export const dashboardColumns: RequestType<
  { epoch: number; keys: string[]; overview: boolean; smoothing: number },
  { epoch: number; rows: number; columns: Record<string, ColumnPart> }
> = { method: 'dashboard/columns' };

/** New lines of metrics.jsonl since the last message, in order; empty if only the status changed. */
export const dashboardLines: NotificationType<{ run: RunSummary; lines: MetricNumbers[]; events: RunEvent[] }> = {
  method: 'dashboard/lines',
};

/** Share of the metrics that has been read, 0…1. When the share is 1, the page requests the data again. */
export const dashboardRead: NotificationType<{ read: number }> = { method: 'dashboard/read' };

/**
 * Distribution of a tag's scores over steps: `counts[column * bins + bin]` is the number of episodes whose step is in
 * the column's range and whose score is in the bin's range.
 */
export interface ScoreStrip {
  tag: string;
  low: number;
  high: number;
  columns: number;
  bins: number;
  counts: Float32Array;
  /**
   * Lowest and highest score that fell into each bin in any step of the run. If both are equal, the bin contains only
   * this score.
   */
  lowest: Float64Array;
  highest: Float64Array;
}

/**
 * Returns the index of the column that contains a step, in score strips over steps [from, to]. Multiplies before
 * dividing. Otherwise, if each step has its own column, rounding could leave a column empty.
 */
export const scoreColumn = (step: number, from: number, to: number, columns: number): number =>
  Math.max(0, Math.min(columns - 1, Math.floor(((step - from) * columns) / Math.max(1, to - from + 1))));

/** Returns one score strip per tag over steps [from, to], each with the given number of columns. */
export const dashboardScores: RequestType<{ from: number; to: number; columns: number }, ScoreStrip[]> = {
  method: 'dashboard/scores',
};

/** Returns the episodes that are worth reading first; empty until the run has played an episode. */
export const dashboardPicked: RequestType<null, PickedEpisode[]> = { method: 'dashboard/picked' };

/** Opens an episode on the Episodes page. */
export const dashboardEpisode: NotificationType<{ id: string }> = { method: 'dashboard/episode' };

/** Data to write to a file that the user names: a chart image, or the metrics in rows [from, to). */
export type Export =
  | { kind: 'picture'; name: string; format: 'png' | 'svg'; bytes: Uint8Array }
  | { kind: 'csv'; name: string; keys: string[]; from: number; to: number };

/** Writes the export. Returns false if the user cancelled. */
export const dashboardExport: RequestType<Export, boolean> = { method: 'dashboard/charts/chart-export' };

/** The page's changed view settings. The host stores them as defaults for later pages of this workspace. */
export const dashboardView: NotificationType<{ view: unknown }> = { method: 'dashboard/view' };

/** Commands of the dashboard's buttons. */
export type DashboardCommandName =
  | 'pause'
  | 'resume'
  | 'stop'
  | 'settings'
  | 'episodes'
  | 'collapse'
  | 'timeline'
  | 'log'
  | 'compare'
  | 'evaluate'
  | 'fork'
  | 'export';

export const dashboardCommand: NotificationType<{
  command: DashboardCommandName;
}> = {
  method: 'dashboard/command',
};
