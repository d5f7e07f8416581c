import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { overviewOf } from '../../../extension/common/curves';
import { smooth } from '../../../extension/common/smoothing';
import type { ColumnPart, DashboardSnapshot } from '../../../extension/protocol/dashboard-page';
import { arranged, orderAfterMove, pinToggled, type Arrangement } from '../../../webview/dashboard/charts/arrangement';
import {
  logRange,
  logTicks,
  relativePosition,
  progressRange,
  progressTicks,
  ticksOf,
  valueRange,
  zoomRange,
} from '../../../extension/run-data/charts/axis';
import { noneRedundant } from '../../../extension/run-data/redundant-columns';
import type { ChartPlan } from '../../../envs/api/plugins/chart';
import { arrange, tagsOf, unitOf, type ChartGroup, type ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { metricName } from '../../../extension/run-data/charts/metric-names';
import { Curve, lowerBound } from '../../../extension/run-data/charts/curve';
import { marksOf, thinned } from '../../../extension/run-data/charts/chart-marks';
import { edgesOf } from '../../../webview/charts/plot';
import { wilson, withoutOutliers, yRange, type PlotLine } from '../../../extension/run-data/charts/plot-data';
import { labelsOfX, labelsOfY } from '../../../extension/run-data/charts/tick-labels';
import { SeriesStore } from '../../../webview/charts/metric-series';
import { changeOverTenSteps } from '../../../webview/dashboard/charts/recent-change';
import { firstSettings } from '../../../webview/dashboard/dashboard-settings';
import { panned, zoomed } from '../../../webview/dashboard/charts/zoom';
import { hue } from '../../../webview/shared/run-colours';
import { reinterpret } from '../../support/partial';

fc.configureGlobal({ seed: 20260203 });
const line = (step: number, metrics: Record<string, number> = {}) => ({ step, wall_s: step * 2, ...metrics });
const of = (...values: number[]) => Float64Array.from(values);
const extent = (values: Float64Array) => Curve.of(values).extent();
/** The points of a column as a chart draws them. */
const linePoints = (xs: Float64Array, ys: Float64Array, from: number, to: number, buckets: number) =>
  Curve.of(ys).points(xs, from, to, buckets);

const snapshot = (rows: number, keys: string[]): DashboardSnapshot => ({
  ...reinterpret<DashboardSnapshot>({ run: null, read: 1, events: [], meanings: {}, view: null, scored: false }),
  epoch: 1,
  steps: rows > 0 ? [[1, rows]] : [],
  keys,
  episodes: { train: 8, val: {} },
  redundant: noneRedundant,
});

/** A store whose host has these columns; `answer` delivers the pending requests. */
function storeWith(columns: Record<string, ColumnPart>, rows: number) {
  const asked: { keys: string[]; overview: boolean }[] = [];
  const waiting: (() => void)[] = [];
  const came: string[] = [];
  const request = (_: unknown, params: { keys: string[]; overview: boolean }) => {
    asked.push({ keys: params.keys, overview: params.overview });
    return new Promise(resolve => {
      const parts = Object.fromEntries(params.keys.map(key => [key, columns[key]]));
      waiting.push(() => resolve({ epoch: 1, rows, columns: parts }));
    });
  };
  const store = new SeriesStore({ request: request as never }, keys => came.push(...keys), 0);
  store.load(snapshot(rows, Object.keys(columns)));
  const answer = async () => {
    for (const each of waiting.splice(0)) each();
    await new Promise(resolve => setImmediate(resolve));
  };
  return { store, asked, came, answer };
}
const whole = (...values: number[]): ColumnPart => ({ kind: 'whole', values: of(...values) });

describe('a curve of an expression', () => {
  it('loads its metrics completely, and grows with the lines', async () => {
    const { store, asked, answer } = storeWith({ 'a/x': whole(1, NaN, 3), 'b-y': whole(2, 4, 6) }, 3);
    const key = '=a/x / b-y + step';
    expect([store.has(key), store.has('=a/x + c'), store.has('=a/x +')]).toEqual([true, false, false]);
    store.want([key]);
    expect(store.curve(key)).toBeUndefined();
    await answer();
    expect(asked.map(({ keys, overview }) => [keys, overview])).toEqual([
      [['a/x'], false],
      [['b-y'], false],
    ]);
    expect([...store.curve(key)!.values]).toEqual([1.5, NaN, 3.5]);
    expect([...store.smoothed(key, 0.5)!.values].slice(0, 2)).toEqual([1.5, NaN]);
    const before = store.curve(key);
    store.append([line(4, { 'a/x': 1, 'b-y': 2 }), line(5, { 'a/x': 1, 'b-y': 0 })]);
    expect(store.curve(key)).toBe(before);
    expect([...before!.values].slice(3)).toEqual([4.5, NaN]);
    expect(store.smoothed(key, 0.5)!.length).toBe(5);
    expect([...store.smoothed(key, 0.5)!.values]).toEqual([...smooth(before!.values, 0.5)]);
  });
});

describe('columns of a run', () => {
  it('load on demand, once, and grow with the lines', async () => {
    const { store, asked, came, answer } = storeWith({ a: whole(1, NaN), b: whole(NaN, 4) }, 2);
    store.want(['a']);
    store.want(['a']);
    expect(store.curve('a')).toBeUndefined();
    await answer();
    expect(asked).toEqual([{ keys: ['a'], overview: true }]);
    expect(came).toEqual(['a']);
    store.append([line(3, { a: 5, c: 6 }), line(4)]);
    expect([...store.steps]).toEqual([1, 2, 3, 4]);
    expect([...store.curve('a')!.values]).toEqual([1, NaN, 5, NaN]);
    expect(store.curve('b')).toBeUndefined();
    expect([...store.curve('c')!.values]).toEqual([NaN, NaN, 6, NaN]);
    expect(store.keys).toEqual(['a', 'b', 'wall_s', 'c']);
    store.want(['c', 'unheard of']);
    expect(asked).toHaveLength(1);
  });

  it('in transit include the lines that arrive meanwhile', async () => {
    const { store, answer } = storeWith({ a: whole(1, 2) }, 2);
    store.want(['a']);
    store.append([line(3, { a: 3 }), line(4)]);
    await answer();
    expect([...store.curve('a')!.values]).toEqual([1, 2, 3, NaN]);
  });

  it('of a long run load as an overview first, with its smoothing, then completely', async () => {
    const points = { rows: Int32Array.of(0, 2), values: of(1, 3) };
    const smoothed = { rows: Int32Array.of(0, 2), values: of(1, 2) };
    const columns: Record<string, ColumnPart> = { a: { kind: 'overview', points, smoothed } };
    const { store, asked, answer } = storeWith(columns, 3);
    store.smoothing = 0.5;
    store.want(['a']);
    await answer();
    expect([...store.curve('a')!.values]).toEqual([1, NaN, 3]);
    expect([...store.smoothed('a', 0.5)!.values]).toEqual([1, NaN, 2]);
    expect(store.isComplete(['a'])).toBe(false);
    columns.a = whole(1, 2, 3);
    store.want(['a']);
    await vi.waitFor(() => expect(asked).toHaveLength(2)); // full columns wait for an idle moment
    await answer();
    expect(asked.map(({ overview }) => overview)).toEqual([true, false]);
    expect([...store.curve('a')!.values]).toEqual([1, 2, 3]);
    expect([...store.smoothed('a', 0.5)!.values]).toEqual([...smooth(of(1, 2, 3), 0.5)]);
    store.append([line(4, { a: 9 })]);
    expect(store.smoothed('a', 0.5)!.values[3]).toBeCloseTo(smooth(of(1, 2, 3, 9), 0.5)[3], 12);
  });

  it('can be placed by step, by time, and by episodes as played or as configured', async () => {
    const { store, answer } = storeWith({ wall_s: whole(2, 5), 'train/num_episodes': whole(10, NaN) }, 2);
    expect(store.axes).toEqual(['step', 'time', 'episodes']);
    for (const axis of ['time', 'episodes'] as const) expect(store.positions(axis).axis).toBe('step'); // until loaded
    await answer();
    expect([...store.positions('time').xs]).toEqual([2, 5]);
    expect([...store.positions('episodes').xs]).toEqual([10, 18]);
    store.append([line(5, { 'train/num_episodes': 3 })]);
    expect([...store.positions('episodes').xs]).toEqual([10, 18, 21]);
  });

  it('find a row by step', () => {
    expect([0, 10, 11, 20, 31].map(step => lowerBound([10, 20, 30], step))).toEqual([0, 0, 1, 1, 3]);
  });
});

describe('smoothing', () => {
  it('is off at 0, keeps a constant, and starts at the first value', () => {
    const values = of(3, NaN, 5);
    expect(smooth(values, 0)).toBe(values);
    expect([...smooth(of(2, 2, 2), 0.9)].map(value => value.toFixed(9))).toEqual([
      '2.000000000',
      '2.000000000',
      '2.000000000',
    ]);
    expect(smooth(values, 0.6)[0]).toBeCloseTo(3, 12);
    expect(smooth(values, 0.6)[1]).toBeNaN();
  });

  it('is an exponentially weighted mean', () => {
    const [a, b, c] = [1, 5, 2];
    const f = 0.5;
    expect(smooth(of(a, b, c), f)[2]).toBeCloseTo((a * f * f + b * f + c) / (f * f + f + 1), 12);
  });

  it('decays by steps, so that a metric of every tenth step is hardly smoothed', () => {
    const sparse = new Float64Array(21).fill(NaN);
    [sparse[0], sparse[10], sparse[20]] = [0, 1, 1];
    expect(smooth(sparse, 0.6)[20]).toBeGreaterThan(0.99);
  });
});

describe('the drawn points of a column', () => {
  const xs = Float64Array.from({ length: 10_000 }, (_, i) => i);

  it('keep every spike', () => {
    const ys = Float64Array.from(xs, x => Math.sin(x / 500));
    ys[4321] = 40;
    ys[7654] = -40;
    const points = linePoints(xs, ys, 0, 9999, 280);
    expect(points.length).toBeLessThanOrEqual(2 * 282);
    expect(points).toContainEqual({ x: 4321, y: 40 });
    expect(points).toContainEqual({ x: 7654, y: -40 });
    expect(points.every((point, i) => i === 0 || point.x >= points[i - 1].x)).toBe(true);
  });

  it('are the column itself when there is room', () => {
    expect(linePoints(of(1, 2, 3), of(5, 6, 7), 0, 10, 280)).toEqual([
      { x: 1, y: 5 },
      { x: 2, y: 6 },
      { x: 3, y: 7 },
    ]);
  });

  it('break at a missing value, but not between the steps of a metric logged every tenth step', () => {
    const holed = linePoints(of(1, 2, 3, 4, 5), of(1, 1, NaN, 1, 1), 0, 10, 280);
    expect(holed.map(point => point.y)).toEqual([1, 1, NaN, 1, 1]);
    const sparse = Float64Array.from({ length: 100 }, (_, i) => ((i + 1) % 10 === 0 ? 1 : NaN));
    expect(linePoints(xs.subarray(0, 100), sparse, 0, 100, 280).every(point => point.y === 1)).toBe(true);
    const columns = [sparse, of(1, NaN, 1, 1, 1), of(NaN), of()];
    expect(columns.map(column => Curve.of(column).usualSpacing)).toEqual([10, 1, 1, 1]);
    // Validation at 0, 8 and at the run's end, 11.
    const late = Float64Array.from({ length: 12 }, (_, i) => ([0, 8, 11].includes(i) ? 1 : NaN));
    expect(linePoints(xs.subarray(0, 12), late, 0, 11, 280).map(point => point.y)).toEqual([1, 1, 1]);
  });

  it('stay in their range, with one value beyond each end', () => {
    expect(linePoints(of(1, 2, 3, 4, 5, 6), of(1, 2, 3, 4, 5, 6), 3, 4, 280).map(point => point.x)).toEqual([
      2, 3, 4, 5,
    ]);
    const zoomedIn = linePoints(xs, xs, 4000.5, 4010, 280).map(point => point.x);
    expect([zoomedIn[0], zoomedIn.at(-1), zoomedIn.length]).toEqual([4000, 4011, 12]);
  });

  it('of an overview keep every spike, and the latest values individually', () => {
    const ys = Float64Array.from(xs, x => Math.cos(x / 300));
    ys[777] = 12;
    const { rows, values } = overviewOf(ys, 100);
    expect(values[rows.indexOf(777)]).toBe(12);
    expect([...rows.slice(-64)]).toEqual(Array.from({ length: 64 }, (_, i) => 9936 + i));
    expect(rows.length).toBeLessThanOrEqual(264);
    const curve = Curve.overview({ rows, values }, ys.length);
    expect(curve.extent()).toEqual(extent(ys));
    expect(curve.points(xs, 0, 9999, 280).some(point => Number.isNaN(point.y))).toBe(false);
  });

  it('of an overview equal those of a column with its values only, and grow like it', () => {
    const column = fc.array(fc.oneof(fc.double({ noNaN: true }), fc.constant(NaN)), { minLength: 1, maxLength: 900 });
    fc.assert(
      fc.property(column, fc.integer({ min: 1, max: 90 }), (values, parts) => {
        const points = overviewOf(Float64Array.from(values), parts);
        const sparse = new Float64Array(values.length).fill(NaN);
        points.rows.forEach((row, i) => (sparse[row] = points.values[i]));
        const [known, wanted] = [Curve.overview(points, values.length), Curve.of(sparse)];
        for (const next of [NaN, 2, -3e300, NaN, NaN]) {
          expect(known.values).toEqual(wanted.values);
          expect(known.extent()).toEqual(wanted.extent());
          expect(known.extent(64, 640)).toEqual(wanted.extent(64, 640));
          expect(known.lastFinite()).toBe(wanted.lastFinite());
          known.push(next);
          wanted.push(next);
        }
      }),
    );
  });

  it('have the column’s extent, whatever their number', () => {
    const column = fc.array(
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }), fc.constant(NaN)),
      { minLength: 1, maxLength: 500 },
    );
    fc.assert(
      fc.property(column, fc.integer({ min: 1, max: 40 }), (values, buckets) => {
        const ys = Float64Array.from(values);
        const drawn = linePoints(xs.subarray(0, ys.length), ys, 0, ys.length - 1, buckets);
        expect(extent(Float64Array.from(drawn, point => point.y))).toEqual(extent(ys));
      }),
    );
  });

  it('take well under a second for 60 metrics of 100,000 steps', () => {
    const long = Float64Array.from({ length: 100_000 }, (_, i) => i);
    const noisy = Float64Array.from(long, x => Math.sin(x * 1.7) + x / 1e4);
    const before = process.cpuUsage(); // CPU time of this process, independent of other load
    for (let metric = 0; metric < 60; metric++) linePoints(long, smooth(noisy, 0.6), 0, 100_000, 280);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(3000);
  });
});

describe('latest values', () => {
  it('are the last finite ones, up to a row', () => {
    const far = new Float64Array(1000).fill(NaN);
    far[130] = 1;
    const columns = [of(1, 2, NaN), of(1, 2, 3), of(NaN), of(), far];
    expect(columns.map((column, i) => Curve.of(column).lastFinite(i === 1 ? 1 : undefined))).toEqual([
      1, 1, -1, -1, 130,
    ]);
  });

  it('have a change over ten steps, or over the spacing of a rarer metric', () => {
    const steps = Float64Array.from({ length: 30 }, (_, i) => i + 1);
    expect(changeOverTenSteps(steps, Curve.of(Float64Array.from(steps, step => step * 2)))).toBe(20);
    expect(changeOverTenSteps(steps, Curve.of(Float64Array.from(steps, step => (step % 15 === 0 ? step : NaN))))).toBe(
      15,
    );
    expect(changeOverTenSteps(steps.subarray(0, 5), Curve.of(of(1, 2, 3, 4, 5)))).toBeNaN();
    expect(changeOverTenSteps(steps, Curve.of(of()))).toBeNaN();
  });
});

describe('axes', () => {
  it('contain the data and end at round values', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
        (low, span) => {
          const high = low + span;
          const range = valueRange(low, high, null);
          const slack = 1e-6 * (range.max - range.min);
          expect(range.min).toBeLessThanOrEqual(low + slack);
          expect(range.max).toBeGreaterThanOrEqual(high - slack);
          const ticks = ticksOf(range, true);
          expect(ticks.length).toBeGreaterThanOrEqual(2);
          expect(ticks.length).toBeLessThanOrEqual(8);
        },
      ),
    );
  });

  it('stay while the data fit and fill a third, and move otherwise', () => {
    const first = valueRange(0, 3.7, null);
    expect(first).toEqual({ min: 0, max: 4, step: 1 });
    expect(valueRange(0, 3.9, first)).toBe(first);
    expect(valueRange(0, 4.1, first).max).toBeGreaterThan(4);
    expect(valueRange(0, 1.2, first).max).toBeLessThan(4);
  });

  it('put a constant other than 0 in the middle', () => {
    expect(valueRange(0, 0, null)).toMatchObject({ min: 0, max: 1 });
    const { min, max } = valueRange(1e-6, 1e-6, null);
    expect(min).toBeLessThan(1e-6);
    expect(max).toBeGreaterThan(1e-6);
  });

  it('start at zero when zero is near, with an exact tick there', () => {
    expect(valueRange(1, 10, null).min).toBe(0);
    expect(valueRange(-10, -1, null).max).toBe(0);
    expect(ticksOf(valueRange(-0.07, 0.05, null), true)).toContain(0);
    expect(ticksOf({ min: 0.6, max: 1.4, step: 0.2 }, false)).toEqual([0.6, 0.8, 1, 1.2, 1.4]);
  });

  it('of progress grow in steps and end with the run', () => {
    expect([1, 9, 11, 57, 99, 140].map(last => progressRange(last, 200).max)).toEqual([10, 10, 12, 60, 100, 140]);
    expect(progressRange(180, 200).max).toBe(200);
    expect(progressRange(10, null).max).toBe(10);
    expect(progressRange(4, 5).max).toBe(5);
    expect(progressRange(7, 5).max).toBe(10); // a run longer than planned
    expect(progressTicks({ min: 0, max: 150, step: 75 }, false)).toEqual([0, 50, 100, 150]);
    expect(progressTicks(progressRange(24, 25), false)).toEqual([0, 10, 20]);
    expect(progressTicks({ min: 0, max: 150, step: 75 }, true)).toEqual([0, 25, 50, 75, 100, 125, 150]);
    expect(progressTicks({ min: 0, max: 7000, step: 3500 }, false, true)).toEqual([0, 1800, 3600, 5400]);
    expect(progressTicks({ min: 0, max: 90, step: 45 }, false, true)).toEqual([0, 30, 60, 90]);
  });
});

describe('ticks', () => {
  const number = fc.double({ min: -1e6, max: 1e6, noNaN: true });

  it('are at least three, inside their range, with different labels, however narrow the range', () => {
    fc.assert(
      fc.property(number, fc.double({ min: -9, max: 6, noNaN: true }), fc.boolean(), (low, exponent, roomy) => {
        const high = low + Math.max(10 ** exponent, Math.abs(low) * 1e-7);
        const range = valueRange(low, high, null);
        for (const ticks of [ticksOf(range, roomy), ticksOf(range, false)]) {
          expect(ticks.length).toBeGreaterThanOrEqual(3);
          expect(ticks.length).toBeLessThanOrEqual(6);
          for (const unit of ['number', 'share', 'seconds'] as const)
            expect(new Set(labelsOfY(ticks, unit)).size).toBe(ticks.length);
        }
        const zoom = zoomRange(Math.abs(low), Math.abs(low) + (high - low));
        for (const isTime of [false, true]) {
          const ticks = progressTicks(zoom, roomy, isTime);
          expect(ticks.length).toBeGreaterThanOrEqual(roomy ? 5 : 3);
          expect(ticks.length).toBeLessThanOrEqual(21);
          expect(new Set(labelsOfX(ticks, isTime ? 'time' : 'step')).size).toBe(ticks.length);
        }
      }),
    );
  });

  it('of a share of 0 are 0 to 100 %, and of a narrow range have enough digits', () => {
    const flat = { points: [{ x: 0, y: 0 }], label: '', colour: '#000000', width: 1, dash: [], alpha: 1 };
    const range = yRange([flat], { min: 0, max: 1, step: 1 }, { unit: 'share', log: false, previous: null })!;
    expect(labelsOfY(ticksOf(range, false), 'share')).toEqual(['0 %', '50 %', '100 %']);
    expect(labelsOfY([1.0001, 1.0002, 1.0003], 'number')).toEqual(['1.0001', '1.0002', '1.0003']);
    expect(labelsOfX([99_950, 99_960, 99_970], 'step')).toEqual(['99950', '99960', '99970']);
    expect(labelsOfX([7200, 7230, 7260], 'time')).toEqual(['2:00:00', '2:00:30', '2:01:00']);
  });

  it('leave room for a whole dot at the first step, but cut off a zoomed line', () => {
    const dot = [{ x: 0, y: 0 }];
    expect(edgesOf(dot, { min: 0, max: 10, step: 5 })).toMatchObject({ left: 4, right: 4, top: 4, bottom: 4 });
    expect(edgesOf([...dot, { x: 12, y: 1 }], { min: 1, max: 10, step: 5 })).toMatchObject({ left: 0, right: 0 });
  });
});

describe('outliers', () => {
  it('are more than three interquartile ranges beyond the quartiles', () => {
    // Quartiles of 1 to 9 are 3 and 7, so the fences are -9 and 19.
    expect(withoutOutliers([1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual({ low: 1, high: 9 });
    expect(withoutOutliers([1, 2, 3, 4, 5, 6, 7, 8, 90])).toEqual({ low: 1, high: 8 });
    expect(withoutOutliers([-90, 2, 3, 4, 5, 6, 7, 8, 19])).toEqual({ low: 2, high: 19 });
    expect(withoutOutliers([5, 5, 5, 5, 5, 9])).toEqual({ low: 5, high: 9 }); // no spread, so nothing is left out
    const decades = withoutOutliers([0.1, 1, 1, 10, 10, 100, 1e9], true);
    expect(decades.low).toBeCloseTo(0.1, 12);
    expect(decades.high).toBeCloseTo(100, 9);
  });

  it('leave at least half of the values inside, and never widen the range', () => {
    const finite = fc.double({ noNaN: true, min: -1e6, max: 1e6 });
    fc.assert(
      fc.property(fc.array(finite, { minLength: 1, maxLength: 60 }), values => {
        const { low, high } = withoutOutliers(values);
        expect(values).toContain(low);
        expect(values).toContain(high);
        const inside = values.filter(value => value >= low && value <= high).length;
        expect(inside * 2).toBeGreaterThanOrEqual(values.length);
      }),
    );
  });

  it('are outside the y axis of a chart that leaves them out, as is the band', () => {
    const points = [1, 2, 3, 4, 5, 6, 7, 8, 9, 500].map((y, x) => ({ x, y }));
    const lines = [{ ...reinterpret<PlotLine>({ points }), band: { low: points, high: [{ x: 1, y: 900 }] } }];
    const x = { min: 0, max: 9, step: 1 };
    const range = (clipped: boolean) => yRange(lines, x, { unit: 'number', log: false, clipped, previous: null })!;
    expect(range(false).max).toBeGreaterThanOrEqual(900);
    expect(range(true)).toMatchObject({ min: 0, max: 10 });
  });
});

describe('logarithmic axes', () => {
  it('contain positive values in whole decades, and stay while the data fit', () => {
    const range = logRange(0.003, 40, null);
    expect(range).toMatchObject({ min: 0.001, max: 100 });
    expect(logRange(0.002, 90, range)).toBe(range);
    expect(logRange(0.002, 101, range).max).toBe(1000);
    expect(logRange(5, 5, null)).toMatchObject({ min: 1, max: 10 });
    expect(logRange(1, 1, null)).toMatchObject({ min: 1, max: 10 });
    expect(logTicks(range, false)).toEqual([0.001, 0.1, 10]);
    expect(logTicks({ min: 1, max: 10, step: 0 }, true)).toEqual([1, 2, 5, 10]);
    expect([
      relativePosition(1, range, true),
      relativePosition(0.001, range, true),
      relativePosition(100, range, true),
    ]).toEqual([0.6, 0, 1]);
  });
});

describe('zooming', () => {
  const all = { from: 0, to: 1000 };

  it('keeps its centre, and ends with the full range', () => {
    const part = zoomed(all, all, 0.5, 200)!;
    expect(part).toEqual({ from: 100, to: 600 });
    expect(zoomed(part, all, 2, 200)).toBeNull();
    expect(zoomed(all, all, 0.1, 0)).toEqual({ from: 0, to: 100 });
  });

  it('never leaves the full range', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 3, noNaN: true }),
        fc.double({ min: 0, max: 1000, noNaN: true }),
        fc.double({ min: -2000, max: 2000, noNaN: true }),
        (factor, about, distance) => {
          const part = zoomed(all, all, factor, about) ?? all;
          for (const { from, to } of [part, panned(part, all, distance)]) {
            expect(from).toBeGreaterThanOrEqual(-1e-6);
            expect(to).toBeLessThanOrEqual(1000 + 1e-6);
            expect(to).toBeGreaterThan(from);
          }
        },
      ),
    );
    expect(panned({ from: 100, to: 200 }, all, -500)).toEqual({ from: 0, to: 100 });
    expect(progressTicks(zoomRange(312, 377), false)).toEqual([325, 350, 375]);
  });
});

describe('intervals of a proportion', () => {
  it('are Wilson’s: within [0, 1], around the proportion, narrower with more episodes', () => {
    const { low, high } = wilson(0.5, 100);
    expect(low).toBeCloseTo(0.4038, 4);
    expect(high).toBeCloseTo(0.5962, 4);
    expect(wilson(0, 10).low).toBe(0);
    expect(wilson(0, 10).high).toBeCloseTo(0.2775, 4);
    expect(wilson(1, 10).high).toBeCloseTo(1, 12);
    expect(wilson(0.3, 1000).high - wilson(0.3, 1000).low).toBeLessThan(wilson(0.3, 100).high - wilson(0.3, 100).low);
  });
});

/** The settings of a new page, with changes. */
const view = (change: object = {}): Arrangement => ({
  ...firstSettings,
  alarmed: [],
  columns: noneRedundant,
  ...change,
});

describe('the arrangement of charts', () => {
  const chartsOf = (keys: string[], group: string) => arrange({ keys }).find(each => each.id === group)?.charts;
  const titles = (keys: string[], group: string) => chartsOf(keys, group)?.map(chart => chart.title);

  it('shows the age of rollouts with the importance weights, and the overlap as a share of the time', () => {
    const keys = ['rollout/staleness', 'rollout/overlap', 'timing_s/rollout_wait', 'rollout_corr/kl'];
    expect(titles(keys, 'stability')).toEqual(['Age of the rollout in steps', 'Sampler divergence (KL)']);
    expect(chartsOf(keys, 'throughput')).toMatchObject([{ title: 'Sampling while training', unit: 'share' }]);
    expect(chartsOf(keys, 'timing')).toMatchObject([{ title: 'Time: waiting for the rollout', unit: 'seconds' }]);
  });

  it('begins with the four main charts, with or without data', () => {
    const top = arranged(arrange({ keys: [] }), view())[0];
    expect(top.id).toBe('pinned');
    expect(top.charts.map(chart => chart.title)).toEqual(['Success', 'Reward', 'In-group reward std', 'Entropy']);
    const [success, reward] = chartsOf(
      ['train/A/success', 'val-env/A/success', 'critic/rewards/mean', 'charts/avg_episode_return'],
      'task',
    )!;
    expect(success.lines.map(({ key, label }) => [key, label])).toEqual([
      ['train/A/success', 'train'],
      ['val-env/A/success', 'val'],
    ]);
    expect(success.lines[1].band).toEqual({ episodes: 'val-env/A/num_episodes', tag: 'A', side: 'val' });
    expect(reward.lines.map(each => each.key)).toEqual(['critic/rewards/mean']);
  });

  it('has the groups in their order', () => {
    const keys = [
      'timing_s/gen',
      'perf/throughput',
      'train/A/success',
      'train/A/num_actions',
      'rollout/filter_kept_ratio',
      'collapse_first_turn_sample/mi_estimate',
      'actor/grad_norm',
      'actor/lr',
      'x',
    ];
    expect(arrange({ keys }).map(group => group.id)).toEqual([
      'task',
      'policy',
      'stability',
      'collapse',
      'filter',
      'environments',
      'throughput',
      'timing',
      'other',
    ]);
  });

  it('draws the lines of a plug-in’s chart together, and each value of a metric apart', () => {
    const keys = [
      'plugin_charts/turn_share/cut_off',
      'plugins/words',
      'plugin_charts/turn_share/done',
      'plugin_charts/a/b',
    ];
    expect(chartsOf(keys, 'plugins')).toMatchObject([
      {
        ...{ id: 'plugin_charts/turn_share', title: 'Turn share', unit: 'share' },
        lines: [
          { key: 'plugin_charts/turn_share/cut_off', label: 'cut off', colour: 0 },
          { key: 'plugin_charts/turn_share/done', label: 'done', colour: 1 },
        ],
      },
      { title: 'A', unit: 'number', lines: [{ label: 'b' }] },
      { id: 'plugins/words', title: 'Plug-in words' },
    ]);
  });

  it('draws the charts that plug-ins list, and leaves the metrics in their own charts', () => {
    const keys = [
      ...['actor/entropy', 'thoughts/most_frequent', 'critic/score/mean', 'critic/score/min', 'critic/score/max'],
      ...['train/A/success', 'val-env/A/success', 'train/A/pass@1', 'train/A/pass@8', 'actor/lr', 'critic/lr'],
      ...['actor/grad_norm', 'critic/grad_norm', 'plugin_charts/moves/up', 'plugin_charts/moves/go_down'],
    ];
    const own: ChartPlan[] = [
      { name: 'signal', title: 'Signal', unit: 'share', explanation: 'Why.', keys: ['actor/entropy', 'thoughts/*'] },
      { name: 'scores', keys: ['critic/score/mean'], plain: true },
      { name: 'both_sides', keys: ['*/A/success'] },
      { name: 'either', keys: ['no/such', ['none', 'actor/entropy'], 'actor/lr'], first: true },
      { name: 'one_side', keys: [['no/*', 'train/*/success', 'val-env/*/success'], 'actor/lr'] },
      { name: 'passes', keys: ['train/*/pass@*'], apart: true },
      { name: 'optimizer', keys: ['*/lr', '*/grad_norm'] },
      { name: 'absent', keys: ['no/such'] },
      { name: 'waiting', keys: ['no/such'], always: true },
      { name: 'moves', title: 'Moves made', unit: 'share', keys: ['plugin_charts/moves/*'] },
    ];
    const shape = (charts: readonly ChartSpec[]) =>
      charts.map(({ id, title, lines }) => [id, title, lines.map(({ label }) => label)]);
    const groups = arrange({ keys, own });
    const [signal, scores, sides, ...rest] = groups.find(({ id }) => id === 'plugins')!.charts;
    expect(signal).toMatchObject({ title: 'Signal', unit: 'share', explanation: 'Why.', listed: true });
    expect(signal.lines.map(({ key, colour }) => [key, colour])).toEqual([
      ['actor/entropy', 0],
      ['thoughts/most_frequent', 1],
    ]);
    expect(scores).toMatchObject({ id: 'plugin_charts/scores', title: 'Scores', lines: [{ label: 'critic' }] });
    expect(scores.lines[0].band).toBeUndefined();
    expect(sides.lines.map(({ label }) => label)).toEqual(['train', 'val']);
    expect(shape(rest)).toEqual([
      ['plugin_charts/either', 'Either', ['Either']],
      ['plugin_charts/one_side', 'One side', ['train success', 'lr']],
      ['plugin_charts/passes/pass@1', 'Pass@1', ['train']],
      ['plugin_charts/passes/pass@8', 'Pass@8', ['train']],
      [
        'plugin_charts/optimizer',
        'Optimizer',
        ['actor/lr', 'critic/lr', 'actor/grad_norm', 'critic/grad_norm'].map(metricName),
      ],
      ['plugin_charts/waiting', 'Waiting', []],
      ['plugin_charts/moves', 'Moves made', ['up', 'go down']],
    ]);
    const others = (charts: readonly ChartGroup[]) => charts.filter(({ id }) => id !== 'plugins');
    expect(others(groups)).toEqual(others(arrange({ keys })));
    expect(new Set(groups.flatMap(({ charts }) => charts.map(({ id }) => id))).size).toBe(
      groups.flatMap(({ charts }) => charts).length,
    );
  });

  it('draws the earlier lines of a chart apart from the keys that an edit has replaced them by', () => {
    const keys = ['actor/entropy', 'plugin_charts/signal/a', 'plugin_charts/signal/b', 'plugin_charts/other/a'];
    const drawn = (...listed: string[]) =>
      arrange({ keys, own: [{ name: 'signal', keys: listed }] })
        .find(({ id }) => id === 'plugins')!
        .charts.map(({ id, title, lines }) => [id, title, lines.map(({ key }) => key)]);
    const other = ['plugin_charts/other', 'Other', ['plugin_charts/other/a']];
    const earlier = ['plugin_charts/signal/*', 'Signal (computed lines)', keys.slice(1, 3)];
    expect(drawn('actor/entropy')).toEqual([['plugin_charts/signal', 'Signal', ['actor/entropy']], earlier, other]);
    const own = ['actor/entropy', 'plugin_charts/signal/a'];
    expect(drawn(...own)).toEqual([['plugin_charts/signal', 'Signal', own], earlier, other]);
    expect(drawn('plugin_charts/other/a')).toEqual([['plugin_charts/signal', 'Signal', [keys[3]]], earlier, other]);
    expect(drawn('plugin_charts/signal/*')).toEqual([['plugin_charts/signal', 'Signal', keys.slice(1, 3)], other]);
  });

  it('draws reward components, and the agreement of two judges, for training and validation', () => {
    const keys = ['train', 'val-env'].flatMap(side => [
      `${side}/A/components/politeness`,
      `${side}/A/judges/quality/agreement`,
    ]);
    const charts = chartsOf(keys, 'environments')!;
    for (const key of keys) {
      const chart = charts.find(({ lines }) => lines.some(line => line.key === key));
      expect(chart?.title.toLowerCase()).toContain(key.endsWith('agreement') ? 'two judges: quality' : 'politeness');
    }
  });

  it('draws how the tags of a curriculum move between the pools', () => {
    const keys = ['A', 'B'].flatMap(tag => ['groups', 'pool', 'success'].map(what => `curriculum/${tag}/${what}`));
    const pools = ['hard', 'normal', 'easy'].map(pool => `curriculum/${pool}`);
    const charts = chartsOf([...keys, ...pools], 'curriculum')!;
    expect(charts.map(({ title, lines }) => [title, lines.map(({ key }) => key)])).toEqual([
      ['Groups by tag', ['curriculum/A/groups', 'curriculum/B/groups']],
      ['Difficulty pool by tag (0 hard, 1 normal, 2 easy)', ['curriculum/A/pool', 'curriculum/B/pool']],
      ['Success by tag, moving average', ['curriculum/A/success', 'curriculum/B/success']],
      ['Tags by pool', pools],
    ]);
  });

  it('names the tags if there are several, with one line per tag in each chart, and can show one tag only', () => {
    const keys = [
      'train/A/success',
      'train/B/success',
      'train/A/num_actions',
      'val-env/B/num_actions',
      'train/B/num_actions',
    ];
    expect(tagsOf(keys)).toEqual(['A', 'B']);
    expect(chartsOf(keys, 'task')![0].lines.map(each => each.label)).toEqual(['train A', 'train B']);
    const [actions] = chartsOf(keys, 'environments')!;
    expect([actions.title, actions.lines.map(each => each.label)]).toEqual([
      'Actions per episode',
      ['train A', 'train B', 'val B'],
    ]);
    const alone = arrange({ keys, tag: 'B' }).flatMap(group => group.charts.flatMap(chart => chart.lines));
    expect(alone.map(each => [each.key, each.label])).toEqual([
      ['train/B/success', 'train'],
      ['train/B/num_actions', 'train'],
      ['val-env/B/num_actions', 'val'],
    ]);
  });

  it('gives training one colour and validation another, in every chart', () => {
    const keys = ['val-env/A/pass@1', 'train/A/pass@1', 'train/A/success', 'val-env/A/success', 'actor/lr'];
    const sides = arrange({ keys }).flatMap(({ charts }) =>
      charts.flatMap(({ lines }) => lines.map(({ key, colour }) => [key.startsWith('val-env/'), colour])),
    );
    for (const [isVal, colour] of sides) expect(colour).toBe(isVal ? hue.vermillion : hue.blue);
    const tags = ['train/A/success', 'train/B/success', 'val-env/A/success', 'val-env/B/success'];
    const colours = chartsOf(tags, 'task')![0].lines.map(({ colour }) => colour);
    expect(new Set(colours).size).toBe(4);
    expect([colours[0], colours[2]]).toEqual([hue.blue, hue.vermillion]);
  });

  it('keeps pass@8 of training and pass@1 of validation on separate axes', () => {
    const charts = chartsOf(['train/A/pass@8', 'val-env/A/pass@1', 'val-env/A/pass@8'], 'task')!;
    const passes = charts.filter(({ id }) => id.startsWith('pass@'));
    expect(passes.map(({ id, title, lines }) => [id, title, lines.map(({ label }) => label)])).toEqual([
      ['pass@1', 'Pass@1', ['val']],
      ['pass@8', 'Pass@8', ['train', 'val']],
    ]);
  });

  it('has an overview of at most ten charts, with the charts that alarms point at', () => {
    const keys = [...Array.from({ length: 20 }, (_, i) => `actor/extra_${i}`), 'actor/grad_norm', 'val-env/A/pass@8'];
    const groups = arrange({ keys });
    const ids = (alarmed: string[]) => arranged(groups, view({ alarmed }))[0].charts.map(({ id }) => id);
    expect(ids(['actor/grad_norm'])).toEqual([
      ...['success', 'reward', 'in-group reward std', 'entropy'],
      'pass@8',
      'gradient norm',
    ]);
    expect(ids(keys)).toHaveLength(10);
    const own = [{ name: 'listed', keys: ['perf/throughput'] }];
    const withOwn = arrange({ keys: ['perf/throughput'], own });
    expect(arranged(withOwn, view({ alarmed: ['perf/throughput'] }))[0].charts.at(-1)?.id).toBe('tokens/s');
    const pinned = keys.slice(0, 15);
    expect(arranged(groups, view({ pinned, alarmed: ['actor/grad_norm'] }))[0].charts).toHaveLength(15);
  });

  it('hides charts of constant or duplicate metrics, but never in the overview', () => {
    const keys = [
      'actor/entropy',
      'actor/lr',
      'actor/ppo_kl',
      'actor/kl_loss',
      'actor/pg_loss',
      'actor/copy',
      'val-env/A/pass@1',
      'val-env/A/success',
    ];
    const columns = {
      constant: { 'actor/entropy': 1, 'actor/lr': 1e-5, 'actor/ppo_kl': 0 },
      equal: [
        ['actor/copy', 'actor/pg_loss'],
        ['val-env/A/pass@1', 'val-env/A/success'],
      ],
    };
    const groups = arranged(arrange({ keys }), view({ columns }));
    const of = (id: string) => groups.find(group => group.id === id);
    expect(groups[0].charts.map(({ id }) => id)).toContain('entropy');
    expect(of('policy')!.charts.map(({ id }) => id)).toEqual(['KL', 'policy loss']);
    expect(of('policy')!.hidden.map(({ id }) => id)).toEqual(['learning rate', 'actor/copy']);
    expect(of('task')).toMatchObject({ charts: [], hidden: [{ id: 'pass@1' }] });
  });

  it('shows every key once, new ones in the group of their kind', () => {
    const keys = [
      'critic/score/mean',
      'critic/score/max',
      'critic/score/min',
      'response_length/mean',
      'response_length/min',
      'response_length/max',
      'collapse_trajectory_sample/mi_estimate',
      'collapse_trajectory_sample/mi_estimate_ci_low',
      'collapse_trajectory_sample/mi_estimate_ci_high',
      'actor/grad_norm',
      'actor/brand_new',
      'new_family/x/y',
      'loose',
      'wall_s',
      'train/A/num_actions',
      'train/context_full',
    ];
    const shown = arrange({ keys }).flatMap(group =>
      group.charts.flatMap(({ lines }) =>
        lines.flatMap(({ key, band }) => (band && 'low' in band ? [key, band.low, band.high] : [key])),
      ),
    );
    expect([...shown].sort()).toEqual(keys.filter(key => key !== 'wall_s').sort());
    expect(titles(keys, 'other')).toEqual(['Loose', 'New family · x · y']);
    expect(titles(keys, 'policy')).toContain('Actor · brand new');
    expect(chartsOf(keys, 'stability')!.find(chart => chart.title === 'Response length')!.lines[0].band).toEqual({
      low: 'response_length/min',
      high: 'response_length/max',
    });
  });

  it('shows the use of the machine and the tokens per second of each phase', () => {
    const keys = ['perf/cpu_machine', 'perf/memory_machine', 'perf/rss_mb', 'perf/gpu_busy', 'perf/gpu_memory_mb'];
    const rates = ['perf/rollout_tokens_per_s', 'perf/train_tokens_per_s', 'perf/log_prob_tokens_per_s'];
    const system = chartsOf([...keys, ...rates], 'system')!;
    expect(system.map(({ title, unit }) => [title, unit])).toEqual([
      ['Use of the machine', 'share'],
      ['Trainer memory (MB)', 'number'],
      ['GPU in use', 'share'],
      ['GPU memory (MB)', 'number'],
    ]);
    expect(system[0].lines.map(({ label }) => label)).toEqual(['cpu', 'memory']);
    const [phases] = chartsOf([...keys, ...rates], 'throughput')!;
    expect(phases.lines.map(({ label }) => label)).toEqual(['rollout', 'train', 'log prob']);
  });

  it('can be customized with pins and positions', () => {
    const groups = arrange({ keys: ['actor/lr', 'actor/ppo_kl', 'actor/pg_loss', 'actor/entropy'] });
    const ids = (settings: typeof firstSettings, group: string) =>
      arranged(groups, view(settings))
        .find(each => each.id === group)
        ?.charts.map(chart => chart.id);
    expect(ids(firstSettings, 'policy')).toEqual(['KL', 'policy loss', 'learning rate']);
    const pinned = { ...firstSettings, ...pinToggled(firstSettings, 'learning rate') };
    expect(ids(pinned, 'pinned')).toEqual(['success', 'reward', 'in-group reward std', 'entropy', 'learning rate']);
    expect(ids(pinned, 'policy')).toEqual(['KL', 'policy loss']);
    const unpinned = { ...pinned, ...pinToggled(pinned, 'entropy') };
    expect(ids(unpinned, 'policy')).toEqual(['entropy', 'KL', 'policy loss']);
    const policy = arranged(groups, view(unpinned)).find(each => each.id === 'policy')!;
    const moved = { ...unpinned, ...orderAfterMove(unpinned, policy, 'entropy', 2) };
    expect(ids(moved, 'policy')).toEqual(['KL', 'policy loss', 'entropy']);
    const top = arranged(groups, view(moved))[0];
    expect(ids({ ...moved, ...orderAfterMove(moved, top, 'learning rate', 0) }, 'pinned')![0]).toBe('learning rate');
  });

  it.each([
    ['train/A/success', 'share'],
    ['val-env/A/pass@16', 'share'],
    ['rollout/filter_kept_ratio', 'share'],
    ['timing_s/gen', 'seconds'],
    ['perf/time_per_step', 'seconds'],
    ['actor/entropy', 'number'],
    ['rollout/filter_kept_count', 'number'],
  ])('%s is a %s', (key, unit) => expect(unitOf(key)).toBe(unit));
});

describe('event marks', () => {
  const event = (step: number, kind: RunEvent['kind']): RunEvent => ({ time: '', step, kind, message: '' });

  it('show events of the charts, in order', () => {
    const happened = [
      event(9, 'alarm'),
      event(2, 'checkpoint'),
      event(3, 'state'),
      event(4, 'setting'),
      event(5, 'environment_reload'),
    ];
    const marks = marksOf(happened, step => (step === 4 ? NaN : step));
    expect(marks.map(mark => [mark.kind, mark.x])).toEqual([
      ['checkpoint', 2],
      ['version', 5],
      ['alarm', 9],
    ]);
  });

  it('are thinned by severity', () => {
    const marks = marksOf(
      [...Array.from({ length: 1000 }, (_, i) => event(i, 'checkpoint')), event(500, 'alarm')],
      step => step,
    );
    const kept = thinned(marks, 50);
    expect(kept.length).toBeLessThanOrEqual(21);
    expect(kept.find(mark => mark.x === 500)?.kind).toBe('alarm');
    expect(kept.every((mark, i) => i === 0 || mark.x - kept[i - 1].x >= 50)).toBe(true);
  });
});
