// The Episodes page's own navigation and settings: what is kept while the page is hidden and across a reload of the window.
import type { StepOf } from './episode-store';

export interface EpisodesView {
  /** The listed step; null lists the newest training step at each opening. */
  selected: StepOf | null;
  /** Id of the open episode. */
  open: string | null;
  filter: string;
  raw: boolean;
  tokens: boolean;
}

/** Raised when the meaning of a setting changes. */
export const viewSchema = 1;

export const firstView: EpisodesView = { selected: null, open: null, filter: '', raw: false, tokens: false };
