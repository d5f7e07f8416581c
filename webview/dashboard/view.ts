// View settings of the Dashboard, kept while the page is hidden, across a window reload, and as defaults for other
// pages of the workspace (except the zoom, which is specific to the run).
import type { XAxis } from './series';

/** View settings stored by the page. */
export interface DashboardView {
  /** Smoothing factor (weight of the past), 0 to 0.99. */
  smoothing: number;
  axis: XAxis;
  /** The visible part of the x axis; null for all of it. */
  zoom: { from: number; to: number } | null;
  /** Shows all metrics as a table instead of charts. */
  table: boolean;
  /** Sort order of the table of all metrics. */
  sort: { column: string; down: boolean } | null;
  /** The environment tag to show; null for all. */
  tag: string | null;
  /** Ids of collapsed groups. */
  folded: string[];
  /** Ids of enlarged charts. */
  enlarged: string[];
  /** Ids of charts with a logarithmic scale. */
  log: string[];
  /** Ids of pinned charts in order; null until the user pins one. */
  pinned: string[] | null;
  /** By group, the ids of its charts in the user's order. */
  order: Record<string, string[]>;
}

/** Increased when the meaning of a setting changes. */
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
