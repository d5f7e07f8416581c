// A plot is a chart drawn with Chart.js. No other file uses Chart.js. The plot draws prepared data and converts between
// pixels and values; smoothing, decimation and ranges are computed elsewhere. Animation and parsing are disabled. All y
// axes have the same width, so that crosshairs align. Only changed parts of the chart are updated, because most
// drawings add only a few points.
import {
  Chart,
  Filler,
  LinearScale,
  LineController,
  LineElement,
  LogarithmicScale,
  PointElement,
  type ChartArea,
  type ChartDataset,
  type Plugin,
  type ScriptableScaleContext,
} from 'chart.js';
import { withAlpha } from '../shared/run-colours';
import type { Theme } from '../shared/theme';
import { logTicks, progressTicks, ticksOf } from '../../extension/run-data/charts/axis';
import type { Point } from '../../extension/run-data/charts/curve';
import { glyphs, isSevere, type Mark } from '../../extension/run-data/charts/chart-marks';
import type { PlotData, PlotLine } from '../../extension/run-data/charts/plot-data';
import { labelsOfX, labelsOfY } from '../../extension/run-data/charts/tick-labels';

export interface Plot {
  update(data: PlotData): void;
  /** Returns the x value at a pixel of the canvas. `pixelOf` is the inverse. */
  xAt(pixel: number): number;
  pixelOf(x: number): number;
  /** Returns the mark at a pixel of the canvas; null if no mark is close. */
  markAt(x: number, y: number): Mark | null;
  destroy(): void;
}

/** Creates a plot on a canvas; tests pass a fake. */
export type Plotter = (canvas: HTMLCanvasElement) => Plot;

export const axisWidth = 48;
export const markSize = 9;
const bandAlpha = 0.14;
/** Pixels around the plot area in which lines and dots at its edge are still drawn. */
const edgeRoom = 4;

export const chartPlotter: Plotter = canvas => {
  Chart.register(LineController, LineElement, PointElement, LinearScale, LogarithmicScale, Filler);
  let data: PlotData | null = null;
  let scales = '';
  let shape = '';
  const chart = new Chart<'line', Point[]>(canvas, {
    type: 'line',
    data: { datasets: [] },
    options: {
      parsing: false,
      normalized: true,
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      resizeDelay: 60,
      events: [],
      layout: { padding: { top: 6, right: 10 } },
      elements: { line: { tension: 0 }, point: { radius: 0 } },
      scales: { x: { type: 'linear' }, y: { type: 'linear', afterFit: scale => void (scale.width = axisWidth) } },
    },
    plugins: [marksPlugin(() => data)],
  });
  return {
    update(next) {
      data = next;
      const sets = next.lines.flatMap(line => datasets(line, next.x));
      const shapeNow = JSON.stringify(sets.map(({ data: _, pointRadius: __, ...style }) => style));
      if (shape === shapeNow) {
        sets.forEach(({ data: points, pointRadius }, i) =>
          Object.assign(chart.data.datasets[i], { data: points, pointRadius }),
        );
      } else chart.data.datasets = sets;
      shape = shapeNow;
      const { x, y, unit, axis, theme, large, log } = next;
      const scalesNow = JSON.stringify([x, y, unit, axis, theme, large, log]);
      if (scales !== scalesNow) setScales(chart, next);
      scales = scalesNow;
      chart.update('none');
    },
    xAt: pixel => chart.scales.x.getValueForPixel(pixel) ?? Number.NaN,
    pixelOf: x => chart.scales.x.getPixelForValue(x),
    markAt(x, y) {
      if (!data || y < chart.chartArea.bottom - 4) return null;
      const near = data.marks.map(mark => ({ mark, distance: Math.abs(chart.scales.x.getPixelForValue(mark.x) - x) }));
      near.sort((a, b) => a.distance - b.distance);
      return near.length > 0 && near[0].distance <= markSize ? near[0].mark : null;
    },
    destroy: () => chart.destroy(),
  };
};

function datasets(
  { points, colour, width, dash, alpha, band }: PlotLine,
  x: PlotData['x'],
): ChartDataset<'line', Point[]>[] {
  const line: ChartDataset<'line', Point[]> = {
    data: points,
    borderColor: withAlpha(colour, alpha),
    borderWidth: width,
    borderDash: [...dash],
    pointBackgroundColor: withAlpha(colour, alpha),
    pointBorderWidth: 0,
    pointRadius: radii(points),
    clip: edgesOf(points, x),
    fill: false,
  };
  if (!band) return [line];
  const edge = { borderWidth: 0, pointRadius: 0 };
  const filled = { ...edge, fill: '+1', backgroundColor: withAlpha(colour, bandAlpha) };
  return [line, { ...filled, data: band.high }, { ...edge, data: band.low, fill: false }];
}

/** Returns the room outside the plot area. A line that continues beyond a zoomed range is cut off at the edge. */
export function edgesOf(points: readonly Point[], x: PlotData['x']): ChartArea {
  const isInside = (point: Point | undefined): boolean => !point || (point.x >= x.min && point.x <= x.max);
  const [left, right] = [points[0], points.at(-1)].map(point => (isInside(point) ? edgeRoom : 0));
  return { left, right, top: edgeRoom, bottom: edgeRoom } as ChartArea;
}

/** Returns the radii of the points. A value without neighbouring values is drawn as a dot, because it has no line. */
function radii(points: Point[]): number | number[] {
  const alone = (i: number) => {
    const open = (at: number) => at < 0 || at >= points.length || Number.isNaN(points[at].y);
    return open(i - 1) && open(i + 1) && !Number.isNaN(points[i].y);
  };
  return points.some((_, i) => alone(i)) ? points.map((_, i) => (alone(i) ? 2 : 0)) : 0;
}

function setScales(chart: Chart<'line', Point[]>, { x, y, unit, axis, theme, large, log }: PlotData): void {
  const scales = chart.options.scales!;
  const ticks = { color: theme.muted, font: { family: theme.fontFamily, size: 10.5 }, autoSkip: false, maxRotation: 0 };
  const grid = (context: ScriptableScaleContext) => {
    const edge = context.tick?.value === 0;
    return mixed(theme.muted, (edge ? 0.32 : 0.13) * (theme.highContrast ? 2 : 1));
  };
  const fixed = (values: number[]) => (scale: { ticks: { value: number }[] }) => {
    scale.ticks = values.map(value => ({ value }));
  };
  const [xTicks, yTicks] = [progressTicks(x, large, axis === 'time'), log ? logTicks(y, large) : ticksOf(y, large)];
  const [xLabels, yLabels] = [labelsOfX(xTicks, axis), labelsOfY(yTicks, unit)];
  scales.x = {
    type: 'linear',
    min: x.min,
    max: x.max,
    afterBuildTicks: fixed(xTicks),
    border: { display: false },
    grid: { display: false },
    ticks: { ...ticks, padding: markSize - 2, align: 'inner', callback: (_, i) => xLabels[i] },
  };
  scales.y = {
    type: log ? 'logarithmic' : 'linear',
    min: y.min,
    max: y.max,
    afterBuildTicks: fixed(yTicks),
    afterFit: scale => void (scale.width = axisWidth),
    border: { display: false },
    grid: { color: grid, drawTicks: false, lineWidth: 1 },
    ticks: { ...ticks, padding: 6, callback: (_, i) => yLabels[i] },
  };
}

/** Returns a theme colour with the opacity `alpha` (0 to 1). The colour may be in any CSS notation. */
const mixed = (colour: string, alpha: number) => `color-mix(in srgb, ${colour} ${alpha * 100}%, transparent)`;

/**
 * Draws a dashed line at a step where the environment's code changed. Episodes left and right of this line used
 * different code.
 */
function divide(ctx: CanvasRenderingContext2D, at: number, { top, bottom }: ChartArea, { muted }: Theme): void {
  ctx.strokeStyle = mixed(muted, 0.7);
  ctx.lineWidth = 1;
  ctx.setLineDash([3, 3]);
  ctx.beginPath();
  ctx.moveTo(Math.round(at) + 0.5, top);
  ctx.lineTo(Math.round(at) + 0.5, bottom);
  ctx.stroke();
}

function marksPlugin(read: () => PlotData | null): Plugin<'line'> {
  return {
    id: 'event-marks',
    afterDraw(chart) {
      const data = read();
      if (!data) return;
      const { ctx, chartArea, scales } = chart;
      ctx.save();
      ctx.font = `${markSize}px ${data.theme.fontFamily}`;
      ctx.textAlign = 'center';
      ctx.textBaseline = 'top';
      for (const { kind, x } of data.marks) {
        const at = scales.x.getPixelForValue(x);
        if (at < chartArea.left - 1 || at > chartArea.right + 1) continue;
        ctx.fillStyle = isSevere(kind) ? data.theme.warning : data.theme.muted;
        ctx.fillText(glyphs[kind], at, chartArea.bottom + 3);
        if (kind === 'version') divide(ctx, at, chartArea, data.theme);
      }
      ctx.restore();
    },
  };
}
