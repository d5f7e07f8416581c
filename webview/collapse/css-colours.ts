// Defines the colours of data as CSS variables, which SVG drawings and bars use. The cells of the matrix are drawn on a
// canvas (step/matrix-canvas.ts), with the hues of ../shared/run-colours.ts.
import { colourOfRun } from '../../extension/run-data/run-colour';
import type { Theme } from '../shared/theme';

/**
 * Writes the variables on the root element; unchanged variables are not written, because each write triggers
 * `onThemeChange`, which redraws the page.
 */
export function setDataColours({ palette, warning }: Theme, run: Parameters<typeof colourOfRun>[0]): void {
  const { style } = document.documentElement;
  const set = (property: string, value: string): void => {
    if (style.getPropertyValue(property) !== value) style.setProperty(property, value);
  };
  palette.forEach((colour, i) => set(`--c${i}`, colour));
  set('--run', palette[colourOfRun(run)]);
  set('--alarm', warning);
}
