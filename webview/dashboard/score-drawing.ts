// Draws the distribution of scores on a canvas: one strip per tag, steps on the x axis, scores on the y axis, darker
// for a larger share of the step's episodes. Axes and colours are those of the other charts.
import type { ScoreStrip } from '../../extension/protocol/dashboard-page';
import { formatNumber } from '../shared/format';
import { withAlpha } from '../shared/palette';
import { progressTicks, relativePosition } from '../charts/axis';
import type { ChartContext } from './context';
import { tickOfX } from './format-x';
import { axisWidth } from '../charts/plot';
import type { LoadedScores } from './score-loader';

const right = 10;
/** Heights in pixels: above the strips, below them for the axis, between two of them. */
const [above, below, gap] = [6, 26, 6];

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Width of the part with strips in a chart of this width. */
export const innerWidth = (width: number): number => Math.max(1, width - axisWidth - right);

/** Pixel of an x value, as in the other charts. */
export const pixelOf = (x: number, width: number, { x: range }: Pick<ChartContext, 'x'>): number =>
  axisWidth + relativePosition(x, range) * innerWidth(width);

/** X value at a pixel. */
export const xAt = (pixel: number, width: number, { x: { min, max } }: Pick<ChartContext, 'x'>): number =>
  min + ((pixel - axisWidth) / innerWidth(width)) * (max - min);

export function drawScores(
  canvas: HTMLCanvasElement,
  { width, height }: Size,
  scores: LoadedScores,
  context: ChartContext,
  isLarge: boolean,
): void {
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  ctx.scale(ratio, ratio);
  const { theme, colour, x, axis } = context;
  ctx.font = `10.5px ${theme.fontFamily}`;
  const { strips } = scores;
  const each = (height - above - below - gap * (strips.length - 1)) / Math.max(1, strips.length);
  strips.forEach((strip, i) => {
    const top = above + i * (each + gap);
    const edges = columnEdges(strip.columns, width, scores, context);
    drawStrip(ctx, strip, { top, height: each, edges }, theme.palette[colour]);
    ctx.fillStyle = theme.muted;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'top';
    ctx.fillText(formatNumber(strip.high), axisWidth - 6, top);
    ctx.textBaseline = 'bottom';
    ctx.fillText(formatNumber(strip.low), axisWidth - 6, top + each);
  });
  ctx.fillStyle = theme.muted;
  ctx.textBaseline = 'top';
  for (const tick of progressTicks(x, isLarge)) {
    ctx.textAlign = tick <= x.min ? 'left' : tick >= x.max ? 'right' : 'center';
    ctx.fillText(tickOfX(tick, axis), pixelOf(tick, width, context), height - 17);
  }
}

/** Left and right pixel of a column: halfway to the neighbouring rows. */
function columnEdges(
  columns: number,
  width: number,
  { from, to }: LoadedScores,
  context: ChartContext,
): (column: number) => [left: number, right: number] {
  const { store, xs } = context;
  const edge = (step: number): number => {
    const row = store.rowFrom(step);
    const before = xs[row - 1] ?? 2 * xs[0] - (xs[1] ?? xs[0] + 1);
    const after = xs[row] ?? 2 * xs[row - 1] - (xs[row - 2] ?? xs[row - 1] - 1);
    return Math.max(axisWidth, Math.min(axisWidth + innerWidth(width), pixelOf((before + after) / 2, width, context)));
  };
  const first = (column: number): number => Math.ceil(from + (column * (to - from + 1)) / columns);
  return column => [edge(first(column)), edge(first(column + 1))];
}

/**
 * Draws a strip in one hue; the opacity is the square root of the bin's share of the column's episodes, so that small
 * counts stay visible.
 */
function drawStrip(
  ctx: CanvasRenderingContext2D,
  { columns, bins, counts }: ScoreStrip,
  at: { top: number; height: number; edges(column: number): [left: number, right: number] },
  colour: string,
): void {
  const up = at.height / bins;
  for (let column = 0; column < columns; column++) {
    let total = 0;
    for (let bin = 0; bin < bins; bin++) total += counts[column * bins + bin];
    if (total === 0) continue;
    const [left, right] = at.edges(column);
    if (right <= left) continue; // out of view
    for (let bin = 0; bin < bins; bin++) {
      const count = counts[column * bins + bin];
      if (count === 0) continue;
      ctx.fillStyle = withAlpha(colour, 0.08 + 0.92 * Math.sqrt(count / total));
      const bottom = at.top + at.height - bin * up;
      // Whole pixels, so that there are no gaps between neighbours.
      const [x0, x1] = [Math.round(left), Math.round(right)];
      const [y0, y1] = [Math.round(bottom - up), Math.round(bottom)];
      ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
    }
  }
}
