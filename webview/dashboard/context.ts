// What all charts of the page have in common: the rows with their x positions, the visible part, marks and meanings.
// It is made anew when the store or the state changes; its `look` stays the same object while only rows and columns are
// added, so that a chart knows whether its drawing can be kept.
import { meaningOf } from '../../extension/run-data/metric-meanings';
import type { RunSummary } from '../../extension/protocol/pages';
import { latest } from '../shared/latest';
import { colourOfRun } from '../shared/palette';
import { displayStatus } from '../shared/run-status';
import { progressRange, zoomRange, type Range } from '../charts/axis';
import { lowerBound } from '../charts/curve';
import { marksOf, thinned, type Mark } from './marks';
import type { PlotContext } from '../charts/plot-data';
import type { SeriesStore, XAxis } from './series';
import type { DashboardState } from './state';

/** Minimum distance in pixels between two marks below a chart. */
const markDistance = 11;

export interface ChartContext extends PlotContext {
  /** Another object whenever more than the rows and their range changes how charts look. */
  readonly look: object;
  /** The range of all rows; `x` is the visible part. */
  readonly whole: Range;
  /** Event marks for a chart of this width in pixels. */
  marks(width: number): readonly Mark[];
  meaning(key: string): string | undefined;
  /** The latest alarm for a key. */
  alarm(key: string): Mark | undefined;
}

/** Makes the contexts of a page's states; the column of the x axis is requested when it is used. */
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
      const all = marksOf(events, ({ step }) =>
        axis === 'step' ? step : (xs[Math.min(store.rowFrom(step), xs.length - 1)] ?? Number.NaN),
      );
      const alarms = all.filter(({ kind }) => kind === 'alarm');
      const alarmByKey = new Map(alarms.map(mark => [String(mark.event.data?.metric), mark]));
      return {
        ...{ store, theme, smoothing, axis, xs, x, whole, colour: colourOfRun(runId) },
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

/** The meaning of a key, looked up once. */
function known(meanings: DashboardState['meanings']): (key: string) => string | undefined {
  const found = new Map<string, string | undefined>();
  return key => {
    if (!found.has(key)) found.set(key, meaningOf(meanings, key));
    return found.get(key);
  };
}

type Facts = Pick<DashboardState, 'events' | 'meanings' | 'episodes'>;

/** The x range of all rows; while the run is running, up to its planned end. */
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

/** The visible marks, thinned for widths rounded to 100 pixels. */
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

/** The row nearest to a position on the x axis; null if there is none. */
export function nearestRow({ xs }: Pick<ChartContext, 'xs'>, x: number): number | null {
  if (xs.length === 0 || !Number.isFinite(x)) return null;
  const after = Math.min(xs.length - 1, lowerBound(xs, x));
  return after > 0 && x - xs[after - 1] < xs[after] - x ? after - 1 : after;
}

/** Rows in the visible part of the x axis: [from, to). */
export function rowsShown(
  { xs }: Pick<ChartContext, 'xs'>,
  { zoom }: DashboardState['settings'],
): { from: number; to: number } {
  return zoom ? { from: lowerBound(xs, zoom.from), to: lowerBound(xs, zoom.to + 1e-9) } : { from: 0, to: xs.length };
}
