// Computes the drawing of one metric of the compared runs. From three seeds on, a group has a line for the mean over
// its seeds, an interval band around this line, and a thin line per seed in the background. A group of fewer seeds has
// a line per seed. With a baseline, all values are differences from the baseline's mean at the same position. Pure
// functions.
import type { Unit } from '../../common/format-values';
import { maximum } from '../../common/lists';
import { intervalSeeds } from '../../common/mean-estimate';
import type { MarkedEvent } from '../event-marks';
import { progressRange, zoomRange, type Range } from './axis';
import { lowerBound, type Point } from './curve';
import { marksAt, thinned, type Mark } from './chart-marks';
import { lineStyle, yRange, type PlotData, type PlotLine } from './plot-data';
import { dashes } from '../../common/palette';
import type { Theme } from './chart-theme';
import { groupCurve, pointsOf, resampled, thinnedPoints, valueAt, type RunCurve } from './group-curves';
import type { CompareAxis } from './run-axis';

/** A metric to draw. */
export interface DrawnMetric {
  readonly title: string;
  readonly unit: Unit;
}

/** A group of runs to draw. */
export interface DrawnGroup {
  readonly label: string;
  /** Indices of the runs. */
  readonly members: readonly number[];
  /** Index into the palette. */
  readonly colour: number;
  /** Index of the dash pattern (common/palette.ts): the number of earlier groups of the same colour. */
  readonly dash: number;
}

/** Gives groups of equal colour different dash patterns. */
export const withDashes = <Group extends DrawnGroup>(groups: readonly Group[]): Group[] =>
  groups.map((group, i) => ({
    ...group,
    dash: groups.slice(0, i).filter(({ colour }) => colour === group.colour).length,
  }));

export interface Comparison {
  /** Content of the chart; null if no run has a value. */
  readonly data: PlotData | null;
  /** For each group, the points of the mean over its seeds, or of this mean's difference from the baseline. */
  readonly means: readonly (readonly Point[])[];
  /** The x range of all rows; `data.x` is the visible part. */
  readonly whole: Range;
}

/** How the comparison is drawn. */
export interface ComparisonLook {
  readonly theme: Theme;
  /** Smoothing factor, 0 to 0.99. */
  readonly smoothing: number;
  readonly axis: CompareAxis;
  /** The visible part of the x axis; null shows all of it. */
  readonly zoom: { readonly from: number; readonly to: number } | null;
  readonly log: boolean;
  readonly large: boolean;
  /** Index of the group from which the drawn values are subtracted; null draws the values themselves. */
  readonly baseline: number | null;
  /** For each run, the events to mark below the chart. */
  readonly events: readonly (readonly MarkedEvent[])[];
  /** The y range of the last drawing; null after a change of the scale. */
  readonly previous: Range | null;
}

/** Number of parts of the x axis for which at most two points are drawn. */
const cells = 400;
/** Number of marks that fit side by side below a small chart. */
const mostMarks = 24;
/** Above this number of drawn groups, the seeds behind a mean are drawn only in an enlarged chart. */
const mostGroupsWithSeeds = 6;

/**
 * Computes the drawing. `curves` and `positions` have one entry per run: the metric's curve, and the positions of its
 * rows on the x axis.
 */
export function comparisonOf(
  { title, unit }: DrawnMetric,
  groups: readonly DrawnGroup[],
  curves: readonly RunCurve[],
  positions: readonly Float64Array[],
  look: ComparisonLook,
): Comparison {
  const { theme, smoothing, axis, zoom, large, baseline, previous } = look;
  const log = look.log && baseline === null;
  const whole = wholeRange(groups, positions);
  const x = zoom ? zoomRange(zoom.from, zoom.to) : whole;
  const grouped = groups.map(({ members, label }) => {
    const seeds = members.map(run => pointsOf(curves[run], smoothing, positions[run]));
    return { label, seeds, ...groupCurve(averaged(seeds, axis, x)) };
  });
  const reference = baseline === null ? null : (grouped[baseline]?.mean ?? null);
  const draw = (points: Point[]): Point[] => {
    const thinned = thinnedPoints(differences(points, reference), x.min, x.max, cells);
    return log ? thinned.map(point => (point.y > 0 ? point : { x: point.x, y: Number.NaN })) : thinned;
  };
  const thin: PlotLine[] = [];
  const lines: PlotLine[] = [];
  groups.forEach(({ colour, dash }, index) => {
    const { label, seeds, mean, band } = grouped[index];
    const style = { ...lineStyle(theme, 0, index), colour: theme.palette[colour % theme.palette.length] };
    if (!theme.highContrast) style.dash = dashes[dash % dashes.length];
    if (seeds.length < intervalSeeds) {
      for (const points of seeds) lines.push({ ...style, label, points: draw(points) });
      return;
    }
    const faint = { width: 1, dash: [], alpha: theme.highContrast ? 0.55 : 0.32, quiet: true };
    if (large || groups.length <= mostGroupsWithSeeds)
      for (const points of seeds) thin.push({ ...style, ...faint, label, points: draw(points) });
    const edges = band && { low: draw(band.low), high: draw(band.high) };
    lines.push({ ...style, label, points: draw(mean), ...(edges && { band: edges }) });
  });
  const means = grouped.map(({ mean }) => differences(mean, reference));
  // The y range covers the lines of groups and seeds but not the bands, because a wide interval of few seeds would
  // flatten all lines.
  const all = [...thin, ...lines];
  const y = yRange(
    all.map(({ band: _, ...line }) => line),
    x,
    { unit: reference ? 'number' : unit, log, previous },
  );
  if (!y) return { data: null, means, whole };
  // Tokens are formatted as steps are: as numbers with SI prefixes.
  const plotAxis = axis === 'time' ? 'time' : 'step';
  const marks = marksIn(groups, curves, positions, look.events, x);
  return {
    data: { title, lines: all, x, y, log, unit, axis: plotAxis, marks, theme, large },
    means,
    whole,
  };
}

/** Returns the marks of the drawn runs inside the visible range; of marks that overlap, the most severe. */
function marksIn(
  groups: readonly DrawnGroup[],
  curves: readonly RunCurve[],
  positions: readonly Float64Array[],
  events: readonly (readonly MarkedEvent[])[],
  x: Range,
): Mark[] {
  const all = groups
    .flatMap(({ members }) => members)
    .flatMap(run => {
      const { steps } = curves[run];
      const last = positions[run].length - 1;
      return marksAt(events[run] ?? [], step => positions[run][Math.min(lowerBound(steps, step), last)] ?? Number.NaN);
    })
    .filter(mark => mark.x >= x.min && mark.x <= x.max)
    .sort((a, b) => a.x - b.x);
  return thinned(all, (x.max - x.min) / mostMarks);
}

/** Returns the x range of all rows of the drawn groups. */
export function wholeRange(groups: readonly DrawnGroup[], positions: readonly Float64Array[]): Range {
  const last = maximum(
    groups.flatMap(({ members }) => members.map(run => positions[run].at(-1) ?? 0)),
    1,
  );
  return progressRange(last, last);
}

/**
 * Returns the seeds' points as they are averaged. Steps are the same in all seeds; on other axes, and for long runs,
 * the seeds are resampled to common positions.
 */
function averaged(seeds: readonly Point[][], axis: CompareAxis, { min, max }: Range): readonly Point[][] {
  if (seeds.length < 2 || (axis === 'step' && seeds.every(({ length }) => length <= cells * 5))) return seeds;
  return seeds.map(points => resampled(points, min, max, cells));
}

/** Subtracts the reference's value at the same position; points beyond the reference's ends are left out. */
function differences(points: readonly Point[], reference: readonly Point[] | null): Point[] {
  if (!reference) return [...points];
  const xs = reference.map(({ x }) => x);
  return points.flatMap(({ x, y }) => {
    const base = valueAt(reference, x, xs);
    return Number.isFinite(base) ? [{ x, y: y - base }] : [];
  });
}
