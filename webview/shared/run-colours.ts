// Helpers for the data palette of extension/common/palette.ts: dash patterns for high contrast, and colours with
// opacity. run-data/run-colour.ts owns the colours of runs. In the charts of one run, the side of a metric (training,
// validation) determines its colour (charts/catalogue.ts); where several runs are shown, the run does.
import { hue, paletteOf } from '../../extension/common/palette';

export { hue, paletteOf };

/** Dash patterns that distinguish lines without colour (high contrast). The first is solid. */
export const dashes: readonly (readonly number[])[] = [
  [],
  [6, 3],
  [2, 2],
  [8, 3, 2, 3],
  [12, 4],
  [4, 6],
  [1, 4],
  [10, 2, 2, 2, 2, 2],
];

/** Adds an opacity (0 to 1) to a colour given as `#rrggbb`. */
export function withAlpha(colour: string, alpha: number): string {
  const [red, green, blue] = [1, 3, 5].map(at => Number.parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}
