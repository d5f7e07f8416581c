// The Collapse page's own settings: what is kept while the page is hidden and across a reload of the window.
import type { FamilyName } from './run-series';

export interface CollapseView {
  family: FamilyName;
  /** The step that is looked at; null follows the newest. */
  step: number | null;
}

/** Raised when the meaning of a setting changes. */
export const viewSchema = 1;

export const firstView: CollapseView = { family: 'collapse_first_turn_sample', step: null };
