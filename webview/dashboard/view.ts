// The Dashboard's own view settings: what is kept while the page is hidden, across a reload of the window, and for the next page of the
// workspace (but for the part that is zoomed to, which is this run's own).
import type { XAxis } from './series';

/** What the page keeps of its own. */
export interface DashboardView {
  /** Weight of the past in the smoothed lines, 0…0.99. */
  smoothing: number;
  axis: XAxis;
  /** The part of the x axis that is shown; null for all of it. */
  zoom: { from: number; to: number } | null;
  /** All metrics as a table in the place of the charts. */
  table: boolean;
  /** The column that tables of all metrics go by. */
  sort: { column: string; down: boolean } | null;
  /** Shows one environment tag; null for all. */
  tag: string | null;
  /** Ids of folded groups. */
  folded: string[];
  /** Ids of enlarged charts. */
  enlarged: string[];
  /** Ids of charts with a logarithmic scale. */
  log: string[];
  /** Ids of pinned charts in their order; null until the user pins one. */
  pinned: string[] | null;
  /** By group, the ids of its charts as the user moved them. */
  order: Record<string, string[]>;
}

/** Raised when the meaning of a setting changes. */
export const viewSchema = 2;

export const firstView: DashboardView = {
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
