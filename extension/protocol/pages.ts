// Messages between the extension host and its pages, and the state each page is given. Who owns what: the run folder owns data,
// the host reads it and sends whole snapshots first and whole lines after; a page owns its navigation and view settings only.
// A page that was hidden asks again with `ready` and gets a fresh snapshot.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { Episode, MetricsLine, RunEvent, RunStatus } from './run-folder';

export interface RunSummary {
  id: string;
  name: string;
  folder: string;
  config_name: string;
  created: string;
  status: RunStatus;
  /** The trainer's lease is alive; a run that says `running` without it was interrupted. */
  live: boolean;
}

/**
 * What every page keeps by `setState`, beside its own view settings, so that the host can restore its panel after a reload
 * of the window. The host writes `folder` into `<body data-run="…">`; a page copies it from there or from a snapshot's run.
 */
export interface PageState {
  /** Absolute path of the run's folder. */
  folder: string;
}

/** Dashboard: everything about one run's numbers. Float64Array, since plain arrays lose NaN (a missing value) on the way. */
export interface DashboardSnapshot {
  run: RunSummary;
  steps: number[];
  /** By metric key, each as long as `steps`; the lines' `wall_s` is among them and makes the time axis. */
  series: Record<string, Float64Array>;
  events: RunEvent[];
  /** One sentence by metric key or pattern, as `parseMetricMeanings` reads them from docs/METRICS.md. */
  meanings: Record<string, string>;
}

export const dashboardReady: RequestType<null, DashboardSnapshot> = { method: 'dashboard/ready' };
/** New lines since the last message, in order; sent with none when only the status changed. A step sent again replaces what came after it. */
export const dashboardLines: NotificationType<{ run: RunSummary; lines: MetricsLine[]; events: RunEvent[] }> = {
  method: 'dashboard/lines',
};
export const dashboardCommand: NotificationType<{ command: 'pause' | 'resume' | 'stop' | 'episodes' | 'log' }> = {
  method: 'dashboard/command',
};

/** A row of the Episodes page's list. */
export interface EpisodeRow {
  id: string;
  step: number;
  mode: 'train' | 'val';
  group_id: number;
  member: number;
  tag: string;
  success: boolean;
  score: number;
  /** Sum of turn rewards, without penalties. */
  reward?: number;
  /** Mean over trained tokens; null when not trained on. */
  advantage?: number | null;
  turns: number;
  /** Sampled tokens: the sum of the mask. */
  tokens: number;
  kept: boolean | null;
}

export interface EpisodesSnapshot {
  run: RunSummary;
  /** Steps that have episodes, in order. */
  steps: { step: number; mode: 'train' | 'val' }[];
  /** The step whose rows are given, the newest unless asked otherwise. */
  selected: { step: number; mode: 'train' | 'val' } | null;
  rows: EpisodeRow[];
}

export const episodesReady: RequestType<{ step: number; mode: 'train' | 'val' } | null, EpisodesSnapshot> = {
  method: 'episodes/ready',
};
export const episodeOpen: RequestType<{ step: number; mode: 'train' | 'val'; id: string }, Episode | null> = {
  method: 'episodes/open',
};
/** New steps have episodes. */
export const episodesGrew: NotificationType<{ run: RunSummary; steps: { step: number; mode: 'train' | 'val' }[] }> = {
  method: 'episodes/grew',
};
