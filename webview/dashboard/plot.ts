// One drawn chart: the only file that knows Chart.js. It draws what it is given and converts between pixels and values; smoothing,
// decimation and ranges are done before. Drawn at once (no animation, no parsing), y axes of one width so that crosshairs align.
import {
  Chart,
  Filler,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  type ChartDataset,
  type Plugin,
  type ScriptableScaleContext,
} from 'chart.js';
import { formatDuration, formatTick, type Unit } from '../shared/format';
import { withAlpha } from '../shared/palette';
import type { Theme } from '../shared/theme';
import { progressTicks, ticksOf, type Range } from './axis';
import { glyphs, type Mark } from './marks';
import type { Point } from './transforms';

export interface PlotLine {
  points: Point[];
  /** `#rrggbb`. */
  colour: string;
  width: number;
  dash: readonly number[];
  /** 0…1; the raw line behind a smoothed one is faint. */
  alpha: number;
}

export interface PlotData {
  lines: PlotLine[];
  /** Fills between the two. */
  band: { low: Point[]; high: Point[]; colour: string } | null;
  x: Range;
  y: Range;
  unit: Unit;
  axis: 'step' | 'time';
  marks: readonly Mark[];
  theme: Theme;
  /** An enlarged chart has finer ticks. */
  large: boolean;
}

export interface Plot {
  update(data: PlotData): void;
  /** Value on the x axis under a pixel of the canvas, and back. */
  xAt(pixel: number): number;
  pixelOf(x: number): number;
  /** The mark under a pixel of the canvas. */
  markAt(x: number, y: number): Mark | null;
  destroy(): void;
}

/** Makes a plot on a canvas; tests hand in another. */
export type Plotter = (canvas: HTMLCanvasElement) => Plot;

const axisWidth = 48;
const markSize = 9;

export const chartPlotter: Plotter = canvas => {
  Chart.register(LineController, LineElement, PointElement, LinearScale, Filler);
  let data: PlotData | null = null;
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
      chart.data.datasets = datasets(next);
      setScales(chart, next);
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

function datasets({ lines, band }: PlotData): ChartDataset<'line', Point[]>[] {
  const sets: ChartDataset<'line', Point[]>[] = lines.map(line => ({
    data: line.points,
    borderColor: withAlpha(line.colour, line.alpha),
    borderWidth: line.width,
    borderDash: [...line.dash],
    pointBackgroundColor: withAlpha(line.colour, line.alpha),
    pointBorderWidth: 0,
    pointRadius: radii(line.points),
    fill: false,
  }));
  if (!band) return sets;
  const edge = { borderWidth: 0, pointRadius: 0 };
  const filled = { ...edge, fill: '+1', backgroundColor: withAlpha(band.colour, 0.14) };
  return [...sets, { ...filled, data: band.high }, { ...edge, data: band.low, fill: false }];
}

/** A value with no neighbour has no line: it is shown as a dot. */
function radii(points: Point[]): number | number[] {
  const alone = (i: number) => {
    const open = (at: number) => at < 0 || at >= points.length || Number.isNaN(points[at].y);
    return open(i - 1) && open(i + 1) && !Number.isNaN(points[i].y);
  };
  return points.some((_, i) => alone(i)) ? points.map((_, i) => (alone(i) ? 2 : 0)) : 0;
}

function setScales(chart: Chart<'line', Point[]>, { x, y, unit, axis, theme, large }: PlotData): void {
  const scales = chart.options.scales!;
  const ticks = { color: theme.muted, font: { family: theme.fontFamily, size: 10.5 }, autoSkip: false, maxRotation: 0 };
  const grid = (context: ScriptableScaleContext) => {
    const edge = context.tick?.value === 0;
    return mixed(theme.muted, (edge ? 0.32 : 0.13) * (theme.highContrast ? 2 : 1));
  };
  const callback = (value: string | number) => {
    if (axis === 'time') return formatDuration(Number(value));
    return formatTick(Number(value), 'number');
  };
  const fixed = (values: number[]) => (scale: { ticks: { value: number }[] }) => {
    scale.ticks = values.map(value => ({ value }));
  };
  scales.x = {
    type: 'linear',
    min: x.min,
    max: x.max,
    afterBuildTicks: fixed(progressTicks(x, large)),
    border: { display: false },
    grid: { display: false },
    ticks: { ...ticks, padding: markSize - 2, align: 'inner', callback },
  };
  scales.y = {
    type: 'linear',
    min: y.min,
    max: y.max,
    afterBuildTicks: fixed(ticksOf(y, large)),
    afterFit: scale => void (scale.width = axisWidth),
    border: { display: false },
    grid: { color: grid, drawTicks: false, lineWidth: 1 },
    ticks: { ...ticks, padding: 6, callback: value => formatTick(Number(value), unit) },
  };
}

/** A theme's colour at an opacity, whatever notation the theme uses. */
const mixed = (colour: string, alpha: number) => `color-mix(in srgb, ${colour} ${alpha * 100}%, transparent)`;

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
        ctx.fillStyle = kind === 'alarm' ? data.theme.warning : data.theme.muted;
        ctx.fillText(glyphs[kind], at, chartArea.bottom + 3);
      }
      ctx.restore();
    },
  };
}
