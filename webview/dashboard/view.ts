// The Dashboard's own view settings: what is kept while the page is hidden and across a reload of the window.

/** What the page keeps of its own. */
export interface DashboardView {
  /** Weight of the past in the smoothed lines, 0…0.99. */
  smoothing: number;
  axis: 'step' | 'time';
  /** All metrics as a table in the place of the charts. */
  table: boolean;
  /** Ids of folded groups. */
  folded: string[];
  /** Ids of enlarged charts. */
  enlarged: string[];
}

/** Raised when the meaning of a setting changes. */
export const viewSchema = 1;

export const firstView: DashboardView = { smoothing: 0, axis: 'step', table: false, folded: ['events'], enlarged: [] };
