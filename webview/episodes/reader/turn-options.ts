// Display options of turns: the settings of the reader's tools, and the theme.
import type { Theme } from '../../shared/theme';

export interface TurnOptions {
  theme: Theme;
  /** Shows the model's complete text, and the state as plain text without a board. */
  raw: boolean;
  /** Shows the sampled token ids, shaded by log-prob. */
  tokens: boolean;
}
