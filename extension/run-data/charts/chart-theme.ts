// The colours and the font of charts as values.
import type { ThemeKind } from '../../common/palette';

export interface Theme {
  kind: ThemeKind;
  highContrast: boolean;
  /** Data colours (extension/common/palette.ts). */
  palette: readonly string[];
  background: string;
  foreground: string;
  /** Colour of descriptions and axis labels. */
  muted: string;
  /** Colour of grid lines and borders. */
  border: string;
  warning: string;
  error: string;
  fontFamily: string;
}
