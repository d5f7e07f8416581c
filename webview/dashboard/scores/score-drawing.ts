// Draws the distribution of scores on a canvas: one strip per tag, with steps on the x axis and scores on the y axis.
// Each cell belongs to one column of steps and to one score. A cell is more opaque if a larger share of the column's
// episodes has this score. Axes and colours match the other charts.
import type { ScoreStrip } from '../../../extension/protocol/dashboard-page';
import { formatNumber } from '../../shared/format';
import { hue, withAlpha } from '../../shared/run-colours';
import { progressTicks, relativePosition } from '../../../extension/run-data/charts/axis';
import type { ChartContext } from '../charts/chart-context';
import { labelsOfX } from '../../../extension/run-data/charts/tick-labels';
import { axisWidth } from '../../charts/plot';
import type { LoadedScores } from './score-loader';

const right = 10;
/** Margins in pixels: above the strips, below the strips (x axis), and between two strips. */
const [above, below, gap] = [6, 26, 6];

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Returns the width of the strips in a chart that is `width` pixels wide. */
export const innerWidth = (width: number): number => Math.max(1, width - axisWidth - right);

/** Converts an x value to a pixel position, as the other charts do. */
export const pixelOf = (x: number, width: number, { x: range }: Pick<ChartContext, 'x'>): number =>
  axisWidth + relativePosition(x, range) * innerWidth(width);

/** Converts a pixel position to an x value. */
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
  const { theme, x, axis } = context;
  ctx.font = `10.5px ${theme.fontFamily}`;
  const { strips } = scores;
  const each = (height - above - below - gap * (strips.length - 1)) / Math.max(1, strips.length);
  strips.forEach((strip, i) => {
    const top = above + i * (each + gap);
    const edges = columnEdges(strip.columns, width, scores, context);
    drawStrip(ctx, strip, { top, height: each, edges }, theme.palette[hue.blue]);
    ctx.fillStyle = theme.muted;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'top';
    ctx.fillText(formatNumber(strip.high), axisWidth - 6, top);
    ctx.textBaseline = 'bottom';
    ctx.fillText(formatNumber(strip.low), axisWidth - 6, top + each);
  });
  ctx.fillStyle = theme.muted;
  ctx.textBaseline = 'top';
  const ticks = progressTicks(x, isLarge, axis === 'time');
  const labels = labelsOfX(ticks, axis);
  for (const [i, tick] of ticks.entries()) {
    ctx.textAlign = tick <= x.min ? 'left' : tick >= x.max ? 'right' : 'center';
    ctx.fillText(labels[i], pixelOf(tick, width, context), height - 17);
  }
}

/**
 * Returns the left and right edge of a column in pixels. The left edge is halfway between the first row of the column
 * and the row before it. The right edge is halfway between the last row of the column and the row after it.
 */
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
 * Draws a strip in one hue. The opacity of a cell increases with the square root of the share of the column's episodes
 * whose score is in the cell's bin. On a linear scale, small shares would be invisible.
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
    if (right <= left) continue; // outside the visible range
    for (let bin = 0; bin < bins; bin++) {
      const count = counts[column * bins + bin];
      if (count === 0) continue;
      ctx.fillStyle = withAlpha(colour, 0.08 + 0.92 * Math.sqrt(count / total));
      const bottom = at.top + at.height - bin * up;
      // Rounded to full pixels, because fractional edges would leave gaps between neighbouring cells.
      const [x0, x1] = [Math.round(left), Math.round(right)];
      const [y0, y1] = [Math.round(bottom - up), Math.round(bottom)];
      ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
    }
  }
}
