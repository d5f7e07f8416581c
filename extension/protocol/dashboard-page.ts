// Messages between the extension host and a run's dashboard. The host owns the numbers and reads them by columns; the page asks for the
// columns of the charts that are on screen, first as an overview where the run is long, then whole. Typed arrays pass as they are.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { CurvePoints } from './curves';
import type { MetricNumbers } from './metric-segments';
import type { RunSummary } from './pages';
import type { RunEvent } from './run-folder';

export interface DashboardSnapshot {
  run: RunSummary;
  /** Row numbers mean something within an epoch; a resume that cut the metrics back begins another. */
  epoch: number;
  /** Steps of the rows, as runs of steps that follow each other: first step, how many. */
  steps: [first: number, count: number][];
  /** Keys that any row has, in the order in which they came; `step` is not among them. */
  keys: string[];
  /** How much of the metrics is read, 0…1. Below 1 the rows are the newest part alone, and `dashboardRead` tells when there is more. */
  read: number;
  events: RunEvent[];
  /** One sentence by metric key or pattern, as `parseMetricMeanings` reads them from docs/METRICS.md. */
  meanings: Record<string, string>;
  /** View settings last used in this workspace: for a page that has none of its own. */
  view: unknown;
  /** Episodes as configured, for runs that do not log how many they played: of a training step, and of a validation by tag. */
  episodes: { train: number | null; val: Record<string, number> };
  /** Whether the run keeps its spread of scores. */
  scored: boolean;
}

/** A column: all rows of the run, or an overview of them with its smoothed form. */
export type ColumnPart =
  { kind: 'whole'; values: Float64Array } | { kind: 'overview'; points: CurvePoints; smoothed: CurvePoints | null };

export const dashboardReady: RequestType<null, DashboardSnapshot> = { method: 'dashboard/ready' };

/** Columns of the given epoch. With `overview` long ones are shortened, and smoothed by `smoothing` (0 for not at all). */
export const dashboardColumns: RequestType<
  { epoch: number; keys: string[]; overview: boolean; smoothing: number },
  { epoch: number; rows: number; columns: Record<string, ColumnPart> }
> = { method: 'dashboard/columns' };

/** New lines since the last message, in order; sent with none when only the status changed. */
export const dashboardLines: NotificationType<{ run: RunSummary; lines: MetricNumbers[]; events: RunEvent[] }> = {
  method: 'dashboard/lines',
};

/** More of the metrics is read, 0…1; at 1 the page asks anew. */
export const dashboardRead: NotificationType<{ read: number }> = { method: 'dashboard/read' };

/** The spread of a tag's scores over steps: `counts[column * bins + bin]` episodes of a part of the steps within a part of the scores. */
export interface ScoreStrip {
  tag: string;
  low: number;
  high: number;
  columns: number;
  bins: number;
  counts: Float32Array;
  /** Of each bin's scores, the least and the greatest; NaN in a bin that has none. */
  least: Float64Array;
  greatest: Float64Array;
}

/** Strips over steps [from, to] in so many columns, one a tag. */
export const dashboardScores: RequestType<{ from: number; to: number; columns: number }, ScoreStrip[]> = {
  method: 'dashboard/scores',
};

/** What is to be written into a file that the user names: a picture of a chart, or rows of metrics by their row numbers [from, to). */
export type Export =
  | { kind: 'picture'; name: string; format: 'png' | 'svg'; bytes: Uint8Array }
  | { kind: 'csv'; name: string; keys: string[]; from: number; to: number };

/** Answers whether it was written: the user may think better of it. */
export const dashboardExport: RequestType<Export, boolean> = { method: 'dashboard/export' };

/** The page's view settings changed: kept for pages of this workspace to come. */
export const dashboardView: NotificationType<{ view: unknown }> = { method: 'dashboard/view' };

export const dashboardCommand: NotificationType<{
  command: 'pause' | 'resume' | 'stop' | 'settings' | 'episodes' | 'collapse' | 'log';
}> = {
  method: 'dashboard/command',
};
