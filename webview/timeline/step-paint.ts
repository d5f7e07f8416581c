// Draws a step on a canvas: axis, counters, lanes and episodes. Only visible rows are drawn. If several very short
// spans of a row lie in the same pixel column, only one of them is drawn. The left margin contains the labels of the
// rows.
import { withAlpha } from '../shared/run-colours';
import type { Theme } from '../shared/theme';
import { spanColour, isWait } from './lane-colours';
import { spanLabel } from './labels';
import type { OpenStep } from './state';
import type { LayoutRow } from './step-layout';
import { formatUs, timeTicks } from './time-axis';

export const axisHeight = 24;

export interface Viewport {
  width: number;
  height: number;
  /** Width of the left margin, which contains the labels of the rows. */
  gutter: number;
  scrollTop: number;
}

/** Returns the width of the left margin for a canvas that is `width` pixels wide. */
export const gutterOf = (width: number): number => (width < 520 ? 84 : 116);

export function paintStep(context: CanvasRenderingContext2D, open: OpenStep, view: Viewport, theme: Theme): void {
  const { width, height, gutter, scrollTop } = view;
  const { layout, range } = open;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  const scale = (width - gutter) / (range.to - range.from);
  const xOf = (us: number): number => gutter + (us - range.from) * scale;
  const matching = open.matches && new Set(open.matches);
  context.font = `11px ${theme.fontFamily}`;
  context.textBaseline = 'middle';
  const ticks = timeTicks(range.from, range.to, Math.floor((width - gutter) / 90));
  context.fillStyle = gridColour(theme);
  for (const { us } of ticks) context.fillRect(Math.round(xOf(us)), axisHeight, 1, height - axisHeight);
  context.save();
  context.beginPath();
  context.rect(0, axisHeight, width, height - axisHeight);
  context.clip();
  for (const [index, row] of layout.rows.entries()) {
    const top = axisHeight + row.top - scrollTop;
    if (top + row.height < axisHeight || top > height) continue;
    paintRow(context, { open, row, index, top, view, xOf, matching, theme });
    paintLabel(context, row, top, view, theme);
  }
  context.restore();
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, axisHeight);
  context.fillStyle = theme.border;
  context.fillRect(0, axisHeight - 1, width, 1);
  context.fillStyle = theme.muted;
  for (const { us, label } of ticks) {
    const x = Math.round(xOf(us));
    context.textAlign = x + 60 > width ? 'right' : 'left';
    context.fillText(label, x + (context.textAlign === 'left' ? 4 : -4), axisHeight / 2);
    context.fillRect(x, axisHeight - 6, 1, 6);
  }
}

interface RowPaint {
  open: OpenStep;
  row: LayoutRow;
  index: number;
  top: number;
  view: Viewport;
  xOf(us: number): number;
  matching: ReadonlySet<number> | null;
  theme: Theme;
}

function paintRow(context: CanvasRenderingContext2D, paint: RowPaint): void {
  const { row, top, view, theme } = paint;
  context.save();
  context.beginPath();
  context.rect(view.gutter, axisHeight, view.width - view.gutter, view.height - axisHeight);
  context.clip();
  if (row.kind === 'head') {
    context.fillStyle = theme.border;
    context.fillRect(view.gutter, top + row.height - 1, view.width, 1);
  } else if (row.series) paintSeries(context, paint);
  else paintSpans(context, paint);
  context.restore();
}

function paintSpans(context: CanvasRenderingContext2D, { open, row, top, view, xOf, matching, theme }: RowPaint): void {
  const { timeline, layout, range, selected } = open;
  const { spans, names } = timeline;
  const inset = row.kind === 'episode' ? 2 : 1;
  const box = row.layerHeight - (row.layerHeight > 4 ? inset : 0);
  const lastPixel = new Map<number, number>();
  for (let k = 0; k < row.spans.length; k++) {
    const i = row.spans[k];
    const from = spans.start[i];
    if (from > range.to) break;
    const to = from + spans.us[i];
    if (to < range.from) continue;
    const layer = layout.layerOf[i];
    const left = Math.max(view.gutter - 1, xOf(from));
    const right = Math.min(view.width + 1, xOf(to));
    const pixel = Math.floor(right);
    const isMatch = matching?.has(i) ?? false;
    if (right - left < 1 && lastPixel.get(layer) === pixel && i !== selected && i !== open.cause && !isMatch) continue;
    lastPixel.set(layer, pixel);
    const kind = names[spans.name[i]];
    const y = top + layer * row.layerHeight;
    const waits = isWait(kind.lane, kind.name);
    context.globalAlpha = matching && !isMatch ? 0.18 : 1;
    context.fillStyle = spanColour(kind.lane, kind.name, theme);
    const drawn = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
    if (waits) context.fillRect(left, y + box / 2 - 1.5, drawn, 3);
    else context.fillRect(left, y, drawn, box);
    if (!waits && right - left > 34 && box >= 12) {
      context.fillStyle = inkOn(context.fillStyle, theme);
      context.textAlign = 'left';
      const text = `${spanLabel(kind)} ${formatUs(spans.us[i])}`;
      context.save();
      context.beginPath();
      context.rect(left, y, drawn - 3, box);
      context.clip();
      context.fillText(text, left + 4, y + box / 2 + 0.5);
      context.restore();
    }
    if (i === selected || i === open.cause) {
      context.globalAlpha = 1;
      context.setLineDash(i === selected ? [] : [3, 2]);
      context.strokeStyle = theme.foreground;
      context.lineWidth = theme.highContrast ? 2 : 1.5;
      context.strokeRect(left - 1, y - 0.5, Math.max(3, right - left + 1), box + 1);
      context.setLineDash([]);
    }
  }
  context.globalAlpha = 1;
}

function paintSeries(context: CanvasRenderingContext2D, { row, top, open, xOf, theme, view }: RowPaint): void {
  const { at, value } = row.series!;
  const bottom = top + row.height - 2;
  const yOf = (count: number): number => bottom - (count / Math.max(1, row.peak)) * (row.height - 8);
  context.beginPath();
  context.moveTo(xOf(at[0]), bottom);
  for (let i = 0; i < at.length; i++) {
    const x = xOf(at[i]);
    const next = xOf(at[i + 1] ?? open.timeline.seconds * 1e6);
    if (next < view.gutter) continue;
    context.lineTo(x, yOf(value[i]));
    context.lineTo(next, yOf(value[i]));
    if (x > view.width) break;
  }
  context.lineTo(Math.min(view.width + 2, xOf(open.timeline.seconds * 1e6)), bottom);
  context.closePath();
  context.fillStyle = withAlpha(theme.palette[0], 0.25);
  context.fill();
  context.strokeStyle = theme.palette[0];
  context.lineWidth = 1;
  context.stroke();
}

function paintLabel(
  context: CanvasRenderingContext2D,
  row: LayoutRow,
  top: number,
  { gutter }: Viewport,
  theme: Theme,
): void {
  context.fillStyle = theme.background;
  context.fillRect(0, top, gutter, row.height + 4);
  context.fillStyle = row.kind === 'episode' ? theme.muted : theme.foreground;
  context.textAlign = 'left';
  context.save();
  context.beginPath();
  context.rect(0, top, gutter - 6, row.height);
  context.clip();
  const middle = top + Math.min(row.height, row.kind === 'counter' ? row.height : 18) / 2;
  context.fillText(row.label, 12, middle);
  if (row.kind === 'counter' && gutter > 100) {
    context.fillStyle = theme.muted;
    context.textAlign = 'right';
    context.fillText(`≤ ${row.peak}`, gutter - 8, middle);
  }
  context.restore();
}

/**
 * Returns the colour in which text is readable on a fill colour: black or white. The fill colour is `#rrggbb`, or
 * `rgba(…)` drawn over the background.
 */
function inkOn(fill: string, { background }: Theme): string {
  const [r, g, b, alpha] = channels(fill);
  const [br, bg, bb] = channels(background);
  const over = (x: number, y: number): number => x * alpha + y * (1 - alpha);
  const luma = 0.299 * over(r, br) + 0.587 * over(g, bg) + 0.114 * over(b, bb);
  return luma > 128 ? '#000000' : '#ffffff';
}

function channels(colour: string): [number, number, number, number] {
  if (colour.startsWith('#') && colour.length >= 7)
    return [...[1, 3, 5].map(at => Number.parseInt(colour.slice(at, at + 2), 16)), 1] as [
      number,
      number,
      number,
      number,
    ];
  const [r = 0, g = 0, b = 0, a = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b, a];
}

/** Returns the colour of grid lines: the border colour with lower opacity. */
function gridColour({ border, highContrast }: Theme): string {
  const [r, g, b, a] = channels(border);
  return `rgba(${r}, ${g}, ${b}, ${a * (highContrast ? 0.3 : 0.5)})`;
}
