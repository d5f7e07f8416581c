// The interface of reports: a text or a document about one or several runs, such as a table for a paper. The built-in
// report (extension/run-data/report/summary-report.ts) implements it, and so does a plug-in: a file whose default export is
// created by `defineReport` and that `ragen report --with` names. A text is printed; a document is written as HTML or
// Markdown. Invariant: `report` is a function of its argument.

/** A run as its folder describes it (docs/RUN-FOLDER.md). */
export interface ReportedRunData {
  id: string;
  /** The name that you gave the run, or that of its configuration. */
  name: string;
  /** State of the run, such as `finished`; null if it is unknown. */
  state: string | null;
  /** The resolved configuration (docs/CONFIGURATION.md). */
  config: Readonly<Record<string, unknown>>;
  /** Metrics of each step, by key (docs/METRICS.md); `step` is the number of the step. */
  metrics: readonly Readonly<Record<string, number>>[];
  events: readonly { step: number; kind: string; message: string }[];
  /** `manifest.json`: seeds, overrides, model, environments, machine and versions. */
  manifest: Readonly<Record<string, unknown>>;
  /** `status.json`; null if the run has none. */
  status: Readonly<Record<string, unknown>> | null;
  /** Whether the run's trainer is alive. */
  live: boolean;
  /** Folder names of the checkpoints, ascending, such as `step-000020`. */
  checkpoints: readonly string[];
  /** The episodes that `--episode` names; by default, the best, the worst and the most changed one. */
  episodes: readonly ReportedEpisodeData[];
  /** Your notes on the run; empty without notes. */
  notes: string;
}

/** An episode that a report may show. */
export interface ReportedEpisodeData {
  /** Why it is shown: one of the picks, or `chosen` by its id. */
  kind: 'best' | 'worst' | 'changed' | 'chosen';
  /** The episode as its file stores it. */
  episode: Readonly<{ id: string; tag: string; seed: number; step: number; score: number; success: boolean | null }>;
}

/** A part of a document. All texts are plain text. */
export type ReportBlock = ReportTextBlock | ReportChartsBlock | ReportEpisodeBlock;

export type ReportTextBlock =
  | { readonly kind: 'heading'; readonly level: 2 | 3; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string; readonly strong?: boolean | undefined }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | { readonly kind: 'facts'; readonly facts: readonly (readonly [label: string, value: string])[] }
  | ReportTable;

export interface ReportTable {
  readonly kind: 'table';
  readonly heads: readonly string[];
  /** Each row has one cell per head; the first cell names the row. */
  readonly rows: readonly (readonly string[])[];
  /** Indices of the columns that contain numbers. */
  readonly numbers: readonly number[];
}

/** Charts of the runs; several runs are drawn as in a comparison. */
export interface ReportChartsBlock {
  readonly kind: 'charts';
  /**
   * Names of the charts: keys of metrics, and ids of charts of the dashboard, such as `success` or `entropy`
   * (extension/run-data/charts/chart-plan.ts). The chart of a plug-in has the id `plugin_charts/<name>`. A chart for which
   * no run has values is left out.
   */
  readonly charts: readonly string[];
}

/** An episode with its states, complete answers, actions and rewards. */
export interface ReportEpisodeBlock {
  readonly kind: 'episode';
  /** Index of the run, and index of the episode in its `episodes`. */
  readonly run: number;
  readonly episode: number;
}

/** A report that is written as a file. */
export interface ReportDocument {
  readonly title: string;
  readonly blocks: readonly ReportBlock[];
}

/** The default export of a report's file. */
export interface ReportPlugin {
  readonly kind: 'report';
  /** Name in messages. */
  name: string;
  /** Returns a text to print, or a document to write. */
  report(runs: readonly ReportedRunData[]): string | ReportDocument;
}

/** Declares a report. */
export function defineReport(definition: Omit<ReportPlugin, 'kind'>): ReportPlugin {
  return { kind: 'report', ...definition };
}
