// The interface of reports of the workspace: a text about one or several runs, such as a table for a paper. A file whose
// default export is created by `defineReport` is named by `ragen report --with`. Invariant: `report` is a function of
// its argument.

/** A run as its folder describes it. */
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
}

/** The default export of a report's file. */
export interface ReportPlugin {
  readonly kind: 'report';
  /** Name in messages. */
  name: string;
  /** Returns the text of the report. */
  report(runs: readonly ReportedRunData[]): string;
}

/** Declares a report. */
export function defineReport(definition: Omit<ReportPlugin, 'kind'>): ReportPlugin {
  return { kind: 'report', ...definition };
}
