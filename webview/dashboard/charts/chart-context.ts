// The context shared by all charts of the page: rows with x positions, the visible range, event marks, and the meanings
// of the metrics. It is recreated when the store or the state changes. If only rows or columns were added, `look` stays
// the same object, and a chart may reuse its drawing.
import { meaningOf } from '../../../extension/run-data/metric-meanings';
import type { RunSummary } from '../../../extension/protocol/page-state';
import { latest } from '../../shared/memoize-latest';
import { displayStatus } from '../../shared/run-status';
import { progressRange, zoomRange, type Range } from '../../../extension/run-data/charts/axis';
import { lowerBound } from '../../../extension/run-data/charts/curve';
import { marksOf, thinned, type Mark } from '../../../extension/run-data/charts/chart-marks';
import type { PlotContext } from '../../../extension/run-data/charts/plot-data';
import type { SeriesStore } from '../../charts/metric-series';
import type { XAxis } from '../../../extension/run-data/charts/format-x';
import type { DashboardState } from '../state';

/** Minimum distance in pixels between two marks below a chart. */
const markDistance = 11;

export interface ChartContext extends PlotContext {
  readonly store: SeriesStore;
  /**
   * Replaced by a new object whenever anything that affects the drawings has changed, except the rows and their range.
   */
  readonly look: object;
  /** The x range of all rows; `x` is the visible part of this range. */
  readonly whole: Range;
  /** Returns the event marks for a chart of `width` pixels. */
  marks(width: number): readonly Mark[];
  meaning(key: string): string | undefined;
  /** Returns the mark of the latest alarm of a key; undefined without an alarm. */
  alarm(key: string): Mark | undefined;
}

/**
 * Returns a function that computes the context of a state. The function requests the metric of the x axis if this
 * metric is not loaded.
 */
export function contextMaker(store: SeriesStore): (state: DashboardState, run: RunSummary) => ChartContext {
  const meaningsOf = latest(known);
  const lookOf = latest((..._inputs: unknown[]) => ({}));
  const make = latest(
    (
      _rows: DashboardState['series'],
      { smoothing, axis: chosen, zoom }: DashboardState['settings'],
      { events, meanings, episodes }: Facts,
      theme: DashboardState['theme'],
      runId: string,
      total: number | null,
      isRunning: boolean,
    ): ChartContext => {
      const { axis, xs } = store.positions(chosen);
      const whole = rangeOf(axis, xs, { total, isRunning, train: episodes.train });
      const x = zoom ? zoomRange(zoom.from, zoom.to) : whole;
      const all = marksOf(events, step =>
        axis === 'step' ? step : (xs[Math.min(store.rowFrom(step), xs.length - 1)] ?? Number.NaN),
      );
      const alarms = all.filter(({ kind }) => kind === 'alarm');
      const alarmByKey = new Map(alarms.map(mark => [String(mark.event.data?.metric), mark]));
      return {
        ...{ store, theme, smoothing, axis, xs, x, whole },
        look: lookOf(smoothing, axis, zoom, theme, events, meanings, episodes, runId),
        marks: marksByWidth(all, x),
        episodes: (tag, side) => (side === 'val' ? episodes.val[tag] : undefined),
        meaning: meaningsOf(meanings),
        alarm: key => alarmByKey.get(key),
      };
    },
  );
  const factsOf = latest(
    (events: Facts['events'], meanings: Facts['meanings'], episodes: Facts['episodes']): Facts => ({
      events,
      meanings,
      episodes,
    }),
  );
  return ({ series, settings, theme, events, meanings, episodes }, run) => {
    const facts = factsOf(events, meanings, episodes);
    const total = run.status.total_steps || null;
    return make(series, settings, facts, theme, run.id, total, displayStatus(run) === 'running');
  };
}

/** Returns a function that looks up the meaning of a key and caches this meaning. */
function known(meanings: DashboardState['meanings']): (key: string) => string | undefined {
  const found = new Map<string, string | undefined>();
  return key => {
    if (!found.has(key)) found.set(key, meaningOf(meanings, key));
    return found.get(key);
  };
}

type Facts = Pick<DashboardState, 'events' | 'meanings' | 'episodes'>;

/**
 * Returns the x range of all rows. While the run is running, the range extends to the planned end of the run if this
 * end is close to the last row.
 */
function rangeOf(
  axis: XAxis,
  xs: Float64Array,
  { total, isRunning, train }: { total: number | null; isRunning: boolean; train: number | null },
): Range {
  const last = xs.length > 0 ? xs[xs.length - 1] : 0;
  if (!isRunning && last > 0) return progressRange(last, last);
  const limit = axis === 'step' ? total : axis === 'episodes' && total && train ? total * train : null;
  return progressRange(last, limit);
}

/**
 * Returns a function that selects the marks to draw for a chart width. Widths are rounded to multiples of 100 pixels,
 * and the result for each multiple is cached.
 */
function marksByWidth(all: readonly Mark[], x: Range): (width: number) => readonly Mark[] {
  const inside = all.filter(mark => mark.x >= x.min && mark.x <= x.max);
  const known = new Map<number, readonly Mark[]>();
  return width => {
    const rounded = Math.max(100, Math.round(width / 100) * 100);
    let marks = known.get(rounded);
    if (!marks) known.set(rounded, (marks = thinned(inside, ((x.max - x.min) * markDistance) / rounded)));
    return marks;
  };
}

/** Returns the row nearest to a position on the x axis; null without rows. */
export function nearestRow({ xs }: Pick<ChartContext, 'xs'>, x: number): number | null {
  if (xs.length === 0 || !Number.isFinite(x)) return null;
  const after = Math.min(xs.length - 1, lowerBound(xs, x));
  return after > 0 && x - xs[after - 1] < xs[after] - x ? after - 1 : after;
}

/** Returns the rows [from, to) within the visible range. */
export function rowsShown(
  { xs }: Pick<ChartContext, 'xs'>,
  { zoom }: DashboardState['settings'],
): { from: number; to: number } {
  return zoom ? { from: lowerBound(xs, zoom.from), to: lowerBound(xs, zoom.to + 1e-9) } : { from: 0, to: xs.length };
}
