// The data palette of extension/common/palette.ts, and colours with opacity. run-data/run-colour.ts owns the colours of runs. In the charts of one run, the side of a metric (training,
// validation) determines its colour (charts/catalogue.ts); where several runs are shown, the run does.
import { dashes, hue, paletteOf } from '../../extension/common/palette';

export { dashes, hue, paletteOf };

/** Adds an opacity (0 to 1) to a colour given as `#rrggbb`. */
export function withAlpha(colour: string, alpha: number): string {
  const [red, green, blue] = [1, 3, 5].map(at => Number.parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}
