// Computes the content of a chart from curves, as plain data: the points, band, colour and dashes of each line. Used by
// the canvas, the SVG export and the comparison of runs.
import { quantile } from '../../common/quantile';
import type { Unit } from '../../common/format-values';
import { dashes } from '../../common/palette';
import type { Theme } from './chart-theme';
import { limitedRange, logRange, shareRange, valueRange, type Limits, type Range } from './axis';
import type { ChartSpec } from './catalogue';
import type { LineBand } from './chart-lines';
import { Curve, type Point } from './curve';
import type { Mark } from './chart-marks';
import type { XAxis } from './format-x';

export interface PlotLine {
  label: string;
  points: Point[];
  /** Colour as `#rrggbb`. */
  colour: string;
  width: number;
  dash: readonly number[];
  /** Opacity, 0 to 1; the raw line behind a smoothed line is faint. */
  alpha: number;
  /** Lower and upper edge of a filled band. */
  band?: { low: Point[]; high: Point[] };
  /** Whether legends omit the line; true for the raw line behind a smoothed line. */
  quiet?: boolean;
}

export interface PlotData {
  title: string;
  lines: PlotLine[];
  x: Range;
  y: Range;
  log: boolean;
  unit: Unit;
  axis: XAxis;
  marks: readonly Mark[];
  theme: Theme;
  /** Whether the chart is enlarged; an enlarged chart has more ticks. */
  large: boolean;
}

/** The curves of a run by metric key. */
export interface CurveSource {
  curve(key: string): Curve | undefined;
  /** Returns a smoothed curve; undefined without a curve of this key, or if `smoothing` is 0. */
  smoothed(key: string, smoothing: number): Curve | undefined;
}

/** State shared by all charts of a run. */
export interface PlotContext {
  store: CurveSource;
  theme: Theme;
  smoothing: number;
  axis: XAxis;
  /** X positions of the rows. */
  xs: Float64Array;
  /** The visible x range. */
  x: Range;
  /**
   * Returns how many episodes of a tag one training step or one validation plays; undefined if unknown. This function
   * is called only if the run does not log the number.
   */
  episodes: (tag: string, side: 'train' | 'val') => number | undefined;
}

/**
 * Computes the content of a chart for a width of `width` pixels; null if no line has a value. `previous` is the y range
 * of the last drawing.
 */
export function plotData(
  spec: ChartSpec,
  context: PlotContext,
  at: {
    width: number;
    log: boolean;
    clipped: boolean;
    limits: Limits | null;
    large: boolean;
    marks: readonly Mark[];
    previous: Range | null;
  },
): PlotData | null {
  const { store, theme, smoothing, xs, x, axis } = context;
  const draw = (curve: Curve) => {
    const points = curve.points(xs, x.min, x.max, at.width);
    return at.log ? points.map(point => (point.y > 0 ? point : { x: point.x, y: Number.NaN })) : points;
  };
  const lines: PlotLine[] = [];
  const raws: PlotLine[] = [];
  spec.lines.forEach(({ key, label, colour, band }) => {
    const curve = store.curve(key);
    if (!curve || curve.lastFinite() < 0) return;
    const style = lineStyle(theme, 0, colour);
    const edges = band && edgesOf(band, curve, context);
    if (smoothing > 0)
      raws.push({
        ...style,
        label,
        points: draw(curve),
        width: 1,
        dash: [],
        alpha: theme.highContrast ? 0.5 : 0.28,
        quiet: true,
      });
    lines.push({
      ...style,
      label,
      points: draw(store.smoothed(key, smoothing) ?? curve),
      ...(edges && { band: { low: draw(edges.low), high: draw(edges.high) } }),
    });
  });
  const all = [...raws, ...lines];
  const range = yRange(all, x, { ...at, unit: spec.unit });
  if (!range || xs.length === 0) return null;
  const { title, unit } = spec;
  const y = at.limits ? limitedRange(range, at.limits, at.log) : range;
  return { title, lines: all, x, y, log: at.log, unit, axis, marks: at.marks, theme, large: at.large };
}

/** Returns the colour, width and dash pattern of a line. In high contrast, each line has a different dash pattern. */
export function lineStyle(
  theme: Theme,
  colour: number,
  colourOffset: number,
): Pick<PlotLine, 'colour' | 'width' | 'dash' | 'alpha'> {
  return {
    colour: theme.palette[(colour + colourOffset) % theme.palette.length],
    width: theme.highContrast ? 2.25 : 1.5,
    dash: theme.highContrast ? dashes[colourOffset % dashes.length] : [],
    alpha: 1,
  };
}

/**
 * Returns the y range of the points within [x.min, x.max]; null if no point lies there. If `clipped` is set, the range
 * leaves out bands and the outliers of the lines (`withoutOutliers`).
 */
export function yRange(
  lines: readonly PlotLine[],
  x: Range,
  { unit, log, clipped = false, previous }: { unit: Unit; log: boolean; clipped?: boolean; previous: Range | null },
): Range | null {
  let low = Infinity;
  let high = -Infinity;
  const values: number[] = [];
  for (const line of lines) {
    for (const points of [line.points, ...(line.band && !clipped ? [line.band.low, line.band.high] : [])]) {
      for (const point of points) {
        if (!Number.isFinite(point.y) || ((point.x < x.min || point.x > x.max) && points.length > 2)) continue;
        if (clipped) values.push(point.y);
        if (point.y < low) low = point.y;
        if (point.y > high) high = point.y;
      }
    }
  }
  if (low > high) return null;
  if (clipped) ({ low, high } = withoutOutliers(values, log));
  if (log) return logRange(low, high, previous);
  if (unit === 'share' && low >= 0 && high <= 1 && (high > 0.25 || high === 0)) return shareRange;
  return valueRange(low, high, previous);
}

/**
 * Returns the lowest and the highest of the values that are no outliers. An outlier is more than three interquartile
 * ranges below the lower or above the upper quartile (the outer fences of Tukey, 1977), in logarithms if `log` is set,
 * where all values must be positive. Without a spread between the quartiles, no value is an outlier.
 */
export function withoutOutliers(values: readonly number[], log = false): { low: number; high: number } {
  const sorted = Float64Array.from(values, value => (log ? Math.log(value) : value)).sort();
  const [lower, upper] = [quantile(sorted, 0.25), quantile(sorted, 0.75)];
  const reach = upper > lower ? 3 * (upper - lower) : Infinity;
  const from = sorted.findIndex(value => value >= lower - reach);
  const to = sorted.findLastIndex(value => value <= upper + reach);
  const [low, high] = [sorted[from], sorted[to]];
  return log ? { low: Math.exp(low), high: Math.exp(high) } : { low, high };
}

/**
 * Returns the 95 % interval (Wilson, 1927) of a share counted over n episodes. The interval lies inside [0, 1] and is
 * also valid for shares of 0 and 1.
 */
export function wilson(share: number, n: number): { low: number; high: number } {
  const z = 1.959964;
  const middle = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const half = (z / (1 + (z * z) / n)) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

const intervals = new WeakMap<Curve, { rows: number; low: Curve; high: Curve }>();

function edgesOf(
  band: LineBand,
  curve: Curve,
  { store, episodes }: PlotContext,
): { low: Curve; high: Curve } | undefined {
  if ('low' in band) {
    const [low, high] = [store.curve(band.low), store.curve(band.high)];
    return low && high && { low, high };
  }
  // Only validation lines have an interval, because users judge a model by its validation. An interval around training
  // success would change at every step and hide the line.
  if (band.side === 'train') return undefined;
  let known = intervals.get(curve);
  if (!known) intervals.set(curve, (known = { rows: 0, low: new Curve(), high: new Curve() }));
  const [counts, usual] = [store.curve(band.episodes)?.values, episodes(band.tag, band.side)];
  const { values } = curve;
  for (; known.rows < values.length; known.rows++) {
    const n = counts && Number.isFinite(counts[known.rows]) ? counts[known.rows] : usual;
    const share = values[known.rows];
    const interval = n && Number.isFinite(share) ? wilson(share, n) : { low: Number.NaN, high: Number.NaN };
    known.low.push(interval.low);
    known.high.push(interval.high);
  }
  return known;
}
