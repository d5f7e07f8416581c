// View settings of the Dashboard: the part of its state that is kept while the page is hidden, across a window reload,
// and as defaults for other pages of the workspace (except the zoom, which is specific to the run).
import type { XAxis } from './series';
import type { Sort } from './sorting';
import type { Span } from './zoom';

export interface DashboardSettings {
  /** Smoothing factor (weight of the past), 0 to 0.99. */
  readonly smoothing: number;
  readonly axis: XAxis;
  /** The visible part of the x axis; null for all of it. */
  readonly zoom: Span | null;
  /** Shows all metrics as a table instead of charts. */
  readonly table: boolean;
  /** Sort order of the table of all metrics. */
  readonly sort: Sort | null;
  /** The environment tag to show; null for all. */
  readonly tag: string | null;
  /** Ids of collapsed groups. */
  readonly folded: readonly string[];
  /** Ids of enlarged charts. */
  readonly enlarged: readonly string[];
  /** Ids of charts with a logarithmic scale. */
  readonly log: readonly string[];
  /** Ids of pinned charts in order; null until the user pins one. */
  readonly pinned: readonly string[] | null;
  /** By group, the ids of its charts in the user's order. */
  readonly order: Readonly<Record<string, readonly string[]>>;
}

/** Increased when the meaning of a setting changes. */
export const settingsSchema = 2;

export const firstSettings: DashboardSettings = {
  smoothing: 0,
  axis: 'step',
  zoom: null,
  table: false,
  sort: null,
  tag: null,
  folded: ['events'],
  enlarged: [],
  log: [],
  pinned: null,
  order: {},
};
