// Display options of turns: the settings of the reader's tools, and the theme.
import type { Theme } from '../../shared/theme';
import type { ShownHeat } from '../heat/heat-state';

export interface TurnOptions {
  theme: Theme;
  /** Whether to show the model's complete text, and the state as plain text instead of a board. */
  raw: boolean;
  /** Whether to show the sampled token ids, shaded by log-prob. */
  tokens: boolean;
  /** Heat maps over pictures; null or absent if they are off. */
  heat?: ShownHeat | null;
}
