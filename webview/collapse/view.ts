// The view settings of the Collapse page, kept while the page is hidden and across a window reload.
import type { FamilyName } from './run-series';

export interface CollapseView {
  family: FamilyName;
  /** The selected step; null follows the newest. */
  step: number | null;
}

/** Increased when the meaning of a setting changes. */
export const viewSchema = 1;

export const firstView: CollapseView = { family: 'collapse_first_turn_sample', step: null };
