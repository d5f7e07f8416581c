// The drawing of values against an expression as SVG: one point per step, connected in the order of the steps. Early
// points are fainter than late ones, and the last point of a line is larger. The drawing contains literal colours, so
// that an exported picture looks like the page.
import { html, nothing, render, svg, type TemplateResult } from 'lit';
import { maximum, minimum } from '../../../extension/common/lists';
import type { Theme } from '../../shared/theme';
import { relativePosition, ticksOf, valueRange, type Range } from '../../../extension/run-data/charts/axis';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { nameOf } from '../../charts/panels';
import { lineStyle } from '../../../extension/run-data/charts/plot-data';
import { labelsOfY } from '../../../extension/run-data/charts/tick-labels';
import type { ChartContext } from './chart-context';
import { solid } from '../../../extension/run-data/charts/svg-plot';

/** Maximum number of drawn points per line; of a longer line, equally distant rows are drawn. */
const mostPoints = 800;

const edge = { left: 48, right: 14, top: 8, bottom: 36 };

export interface ScatterPoint {
  readonly row: number;
  readonly x: number;
  readonly y: number;
}

export interface ScatterLine {
  readonly label: string;
  /** Colour as `#rrggbb`. */
  readonly colour: string;
  /** In the order of the rows; not empty. */
  readonly points: readonly ScatterPoint[];
}

export interface Scatter {
  readonly title: string;
  readonly unit: ChartSpec['unit'];
  readonly xTitle: string;
  readonly lines: readonly ScatterLine[];
  readonly x: Range;
  readonly y: Range;
  readonly theme: Theme;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Returns the content of a chart for the rows in the visible range of the page; null without a point. */
export function scatterOf(spec: ChartSpec, { store, theme, smoothing, xs, x: shown }: ChartContext): Scatter | null {
  const against = store.smoothed(spec.against!, smoothing)?.values;
  if (!against) return null;
  const lines = spec.lines.flatMap(({ key, label, colour }): ScatterLine[] => {
    const values = store.smoothed(key, smoothing)?.values;
    const points: ScatterPoint[] = [];
    for (let row = 0; values && row < values.length; row++) {
      const isShown = xs[row] >= shown.min && xs[row] <= shown.max;
      if (isShown && Number.isFinite(values[row]) && Number.isFinite(against[row]))
        points.push({ row, x: against[row], y: values[row] });
    }
    return points.length === 0 ? [] : [{ label, colour: lineStyle(theme, 0, colour).colour, points: thinned(points) }];
  });
  if (lines.length === 0) return null;
  const all = lines.flatMap(({ points }) => points);
  const rangeOf = (values: number[]): Range => valueRange(minimum(values), maximum(values), null);
  return {
    ...{ title: spec.title, unit: spec.unit, xTitle: nameOf(spec.against!), lines, theme },
    x: rangeOf(all.map(({ x }) => x)),
    y: rangeOf(all.map(({ y }) => y)),
  };
}

function thinned(points: readonly ScatterPoint[]): readonly ScatterPoint[] {
  if (points.length <= mostPoints) return points;
  const every = (points.length - 1) / (mostPoints - 1);
  return Array.from({ length: mostPoints }, (_, i) => points[Math.round(i * every)]);
}

const pixels = (
  { x, y }: Scatter,
  { width, height }: Size,
): ((point: Pick<ScatterPoint, 'x' | 'y'>) => [number, number]) => {
  const [right, bottom] = [width - edge.right, height - edge.bottom];
  const round = (value: number): number => Math.round(value * 100) / 100;
  return point => [
    round(edge.left + relativePosition(point.x, x) * (right - edge.left)),
    round(bottom - relativePosition(point.y, y) * (bottom - edge.top)),
  ];
};

/** Returns the point nearest to a pixel; null if none is within 24 pixels. */
export function nearestPoint(scatter: Scatter, size: Size, pixel: { x: number; y: number }): ScatterPoint | null {
  const at = pixels(scatter, size);
  let nearest: ScatterPoint | null = null;
  let least = 24;
  for (const point of scatter.lines.flatMap(({ points }) => points)) {
    const [x, y] = at(point);
    const distance = Math.hypot(x - pixel.x, y - pixel.y);
    if (distance < least) [nearest, least] = [point, distance];
  }
  return nearest;
}

/** Renders the drawing. `hovered` is the row of the crosshair, whose points are marked; null without. */
export function scatterView(scatter: Scatter, size: Size, large: boolean, hovered: number | null): TemplateResult {
  const { x, y, theme, lines, unit, xTitle, title } = scatter;
  const at = pixels(scatter, size);
  const { width, height } = size;
  const muted = solid(theme.muted, theme);
  const bottom = height - edge.bottom;
  const [xTicks, yTicks] = [ticksOf(x, large), ticksOf(y, large)];
  const [xLabels, yLabels] = [labelsOfY(xTicks, 'number'), labelsOfY(yTicks, unit)];
  const grid = yTicks.map((tick, i) => {
    const [, pixel] = at({ x: x.min, y: tick });
    return svg`<line x1=${edge.left} x2=${width - edge.right} y1=${pixel} y2=${pixel} stroke=${muted} stroke-opacity="0.15"></line
      ><text x=${edge.left - 6} y=${pixel + 3.5} text-anchor="end" fill=${muted}>${yLabels[i]}</text>`;
  });
  const columns = xTicks.map((tick, i) => {
    const [pixel] = at({ x: tick, y: y.min });
    const anchor = i === 0 ? 'start' : i === xTicks.length - 1 ? 'end' : 'middle';
    return svg`<text x=${pixel} y=${bottom + 14} text-anchor=${anchor} fill=${muted}>${xLabels[i]}</text>`;
  });
  return html`<svg
    class="scatter"
    xmlns="http://www.w3.org/2000/svg"
    width=${width}
    height=${height}
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label="Chart of ${title}: one point per step"
    font-size="10.5"
    font-family=${theme.fontFamily.replaceAll('"', "'")}
  >
    ${grid}${columns}
    <text x=${width - edge.right} y=${height - 6} text-anchor="end" fill=${muted}>${xTitle}</text>
    ${lines.map(line => lineView(line, at, hovered, solid(theme.foreground, theme)))}
  </svg>`;
}

function lineView(
  { points, colour, label }: ScatterLine,
  at: (point: ScatterPoint) => [number, number],
  hovered: number | null,
  foreground: string,
): TemplateResult {
  const last = points.length - 1;
  const path = points.map(point => at(point).join(' ')).join('L');
  const dots = points.map((point, i) => {
    const [x, y] = at(point);
    const opacity = (0.25 + 0.75 * ((i + 1) / points.length)).toFixed(2);
    return svg`<circle cx=${x} cy=${y} r=${i === last ? 4 : 2} fill=${colour} fill-opacity=${opacity}></circle>`;
  });
  const marked = hovered === null ? undefined : points.find(({ row }) => row === hovered);
  const [x, y] = marked ? at(marked) : [0, 0];
  const ring = svg`<circle cx=${x} cy=${y} r="6" fill="none" stroke=${foreground} stroke-width="1.5"></circle>`;
  return svg`<g><title>${label}</title><path d=${`M${path}`} fill="none" stroke=${colour} stroke-opacity="0.3"></path>${dots}${marked ? ring : nothing}</g>`;
}

/** Returns the drawing as the text of an SVG file. */
export function scatterText(scatter: Scatter, size: Size): string {
  const holder = document.createElement('div');
  render(scatterView(scatter, size, true, null), holder);
  const picture = holder.querySelector('svg')!;
  const background = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  const { width, height } = size;
  const fill = solid(scatter.theme.background, scatter.theme);
  for (const [name, value] of Object.entries({ width, height, fill })) background.setAttribute(name, String(value));
  picture.prepend(background);
  return `${new XMLSerializer().serializeToString(picture).replaceAll(/<!--.*?-->/gs, '')}\n`;
}
