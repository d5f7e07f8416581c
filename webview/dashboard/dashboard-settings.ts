// View settings of the Dashboard: the part of its state that is kept when the page is hidden or the window is reloaded.
// When another dashboard of the workspace is opened for the first time, it starts with these settings, except the zoom.
import type { Limits } from '../../extension/run-data/charts/axis';
import type { XAxis } from '../../extension/run-data/charts/format-x';
import type { Panel } from '../../extension/run-data/charts/catalogue';
import type { Sort } from './run/table-sorting';
import type { Span } from './charts/zoom';

export interface DashboardSettings {
  /** Smoothing factor: weight of earlier values, 0 to 0.99. */
  readonly smoothing: number;
  readonly axis: XAxis;
  /** The visible part of the x axis; null shows the complete axis. */
  readonly zoom: Span | null;
  /** Whether all metrics are shown as a table instead of charts. */
  readonly table: boolean;
  /** Sort order of the table of all metrics; if null, the rows are grouped instead of sorted. */
  readonly sort: Sort | null;
  /** Environment tag whose metrics are shown; null shows all tags. */
  readonly tag: string | null;
  /** Ids of expanded groups; all other groups are collapsed. */
  readonly open: readonly string[];
  /** Whether constant and duplicate metrics are shown. */
  readonly redundant: boolean;
  /** Ids of enlarged charts. */
  readonly enlarged: readonly string[];
  /** Ids of charts with a logarithmic scale. */
  readonly log: readonly string[];
  /** Ids of charts whose y axis leaves out outliers. */
  readonly clipped: readonly string[];
  /** Ends of y axes that the user has set, by chart id. */
  readonly limits: Readonly<Record<string, Limits>>;
  /** The user's own charts. */
  readonly panels: readonly Panel[];
  /** Ids of pinned charts in order; null selects `pinnedAtFirst`. */
  readonly pinned: readonly string[] | null;
  /** For each group, the ids of its charts in the user's order. */
  readonly order: Readonly<Record<string, readonly string[]>>;
  /** The end of a run (`endingKey`) whose banner was closed; null if none was closed. */
  readonly closedEnding: string | null;
}

/** Version of the settings; increased when the meaning of a setting changes. */
export const settingsSchema = 3;

export const firstSettings: DashboardSettings = {
  smoothing: 0,
  axis: 'step',
  zoom: null,
  table: false,
  sort: null,
  tag: null,
  open: [],
  redundant: false,
  enlarged: [],
  log: [],
  clipped: [],
  limits: {},
  panels: [],
  pinned: null,
  order: {},
  closedEnding: null,
};
