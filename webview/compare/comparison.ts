// Computes the drawing of one metric of the compared runs. Each group has a line for the mean over its seeds, an
// interval band around this line, and a thin line per seed in the background. Pure functions.
import { maximum } from '../../extension/common/lists';
import { progressRange, type Range } from '../charts/axis';
import type { Point } from '../charts/curve';
import { lineStyle, yRange, type PlotData, type PlotLine } from '../charts/plot-data';
import type { Theme } from '../shared/theme';
import type { ColouredGroup, ComparedMetric } from './compared-metrics';
import { groupCurve, pointsOf, type RunCurve } from './group-curves';

export interface Comparison {
  /** Content of the chart; null if no run has a value. */
  readonly data: PlotData | null;
  /** For each group, the points of the line that shows the mean over its seeds. */
  readonly means: readonly (readonly Point[])[];
}

/**
 * Computes the drawing. `curves` has one curve of the metric per run; `previous` is the y range of the last drawing.
 */
export function comparisonOf(
  { title, unit }: ComparedMetric,
  groups: readonly ColouredGroup[],
  curves: readonly RunCurve[],
  look: { theme: Theme; smoothing: number; previous: Range | null },
): Comparison {
  const { theme, smoothing, previous } = look;
  const thin: PlotLine[] = [];
  const lines = groups.map(({ label, colour, members }, index): PlotLine => {
    const style = { ...lineStyle(theme, 0, index), colour: theme.palette[colour % theme.palette.length] };
    const seeds = members.map(run => pointsOf(curves[run], smoothing));
    const alpha = theme.highContrast ? 0.55 : 0.32;
    if (seeds.length > 1)
      for (const points of seeds) thin.push({ ...style, label, points, width: 1, dash: [], alpha, quiet: true });
    const { mean, band } = groupCurve(seeds);
    return { ...style, label, points: mean, ...(band && { band }) };
  });
  const means = lines.map(({ points }) => points);
  const last = maximum(
    curves.map(({ steps }) => steps.at(-1) ?? 0),
    1,
  );
  const x = progressRange(last, last);
  // The y range covers the lines of groups and seeds but not the bands, because the wide interval of only two seeds
  // would flatten all lines.
  const y = yRange([...thin, ...lines.map(({ band: _, ...line }) => line)], x, { unit, log: false, previous });
  if (!y) return { data: null, means };
  return {
    data: { title, lines: [...thin, ...lines], x, y, log: false, unit, axis: 'step', marks: [], theme, large: false },
    means,
  };
}
