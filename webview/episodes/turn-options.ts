// How turns are shown: what the reader's tools choose, and the theme.
import type { Theme } from '../shared/theme';

export interface TurnOptions {
  theme: Theme;
  /** Shows the model's complete text and the state's text unchanged. */
  raw: boolean;
  /** Shows the sampled ids, shaded by log-prob. */
  tokens: boolean;
}
