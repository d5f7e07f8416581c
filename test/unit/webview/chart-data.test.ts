import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../../extension/protocol/run-folder';
import { progressRange, progressTicks, ticksOf, valueRange } from '../../../webview/dashboard/axis';
import { arrange, unitOf } from '../../../webview/dashboard/catalogue';
import { marksOf, thinned } from '../../../webview/dashboard/marks';
import { lowerBound, SeriesStore } from '../../../webview/dashboard/series';
import {
  changeOverTenSteps,
  extent,
  lastFinite,
  linePoints,
  smooth,
  usualSpacing,
} from '../../../webview/dashboard/transforms';

fc.configureGlobal({ seed: 20260203 });
const line = (step: number, metrics: Record<string, number> = {}) => ({
  step,
  time: '2026-02-03T09:30:00Z',
  wall_s: step * 2,
  ...metrics,
});
const of = (...values: number[]) => Float64Array.from(values);

describe('columns of a run', () => {
  it('take a snapshot, with null for NaN as plain JSON has it, and lines after it', () => {
    const store = new SeriesStore();
    store.load({ steps: [1, 2], series: { a: of(1, NaN), b: [null, 4] as unknown as Float64Array } });
    store.append([line(3, { a: 5, c: 6 }), line(4)]);
    expect([...store.steps]).toEqual([1, 2, 3, 4]);
    expect([...store.column('a')!]).toEqual([1, NaN, 5, NaN]);
    expect([...store.column('b')!]).toEqual([NaN, 4, NaN, NaN]);
    expect([...store.column('c')!]).toEqual([NaN, NaN, 6, NaN]);
    expect([...store.column('wall_s')!]).toEqual([NaN, NaN, 6, 8]);
    expect(store.keys).toEqual(['a', 'b', 'wall_s', 'c']);
    expect(store.column('d')).toBeUndefined();
  });

  it('are cut back where a resume writes a step again', () => {
    const store = new SeriesStore();
    store.append([1, 2, 3, 4, 5].map(step => line(step, { a: step })));
    store.append([line(3, { b: 1 })]);
    expect([...store.steps]).toEqual([1, 2, 3]);
    expect([...store.column('a')!]).toEqual([1, 2, NaN]);
    store.append([line(4, { a: 9 })]);
    expect([...store.column('a')!]).toEqual([1, 2, NaN, 9]);
  });

  it('are the same by lines as by snapshot, however they come', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.double({ noNaN: true })), { maxLength: 200 }),
        metrics => {
          const lines = metrics.map((values, i) => line(i + 1, values));
          const [once, apart] = [new SeriesStore(), new SeriesStore()];
          once.append(lines);
          for (const each of lines) apart.append([each]);
          for (const key of once.keys) expect([...apart.column(key)!]).toEqual([...once.column(key)!]);
        },
      ),
      { numRuns: 50 },
    );
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

  it('is the mean with fading weights', () => {
    const [a, b, c] = [1, 5, 2];
    const f = 0.5;
    expect(smooth(of(a, b, c), f)[2]).toBeCloseTo((a * f * f + b * f + c) / (f * f + f + 1), 12);
  });

  it('fades by steps, so that a metric of every tenth step is hardly smoothed', () => {
    const sparse = new Float64Array(21).fill(NaN);
    [sparse[0], sparse[10], sparse[20]] = [0, 1, 1];
    expect(smooth(sparse, 0.6)[20]).toBeGreaterThan(0.99);
  });
});

describe('what is drawn of a column', () => {
  const xs = Float64Array.from({ length: 10_000 }, (_, i) => i);

  it('loses no spike', () => {
    const ys = Float64Array.from(xs, x => Math.sin(x / 500));
    ys[4321] = 40;
    ys[7654] = -40;
    const points = linePoints(xs, ys, 0, 9999, 280);
    expect(points.length).toBeLessThanOrEqual(2 * 281);
    expect(points).toContainEqual({ x: 4321, y: 40 });
    expect(points).toContainEqual({ x: 7654, y: -40 });
    expect(points.every((point, i) => i === 0 || point.x >= points[i - 1].x)).toBe(true);
  });

  it('is the column itself while there is room', () => {
    expect(linePoints(of(1, 2, 3), of(5, 6, 7), 0, 10, 280)).toEqual([
      { x: 1, y: 5 },
      { x: 2, y: 6 },
      { x: 3, y: 7 },
    ]);
  });

  it('breaks where a value is missing, but not between the steps of a metric that comes every tenth', () => {
    const holed = linePoints(of(1, 2, 3, 4, 5), of(1, 1, NaN, 1, 1), 0, 10, 280);
    expect(holed.map(point => point.y)).toEqual([1, 1, NaN, 1, 1]);
    const sparse = Float64Array.from({ length: 100 }, (_, i) => ((i + 1) % 10 === 0 ? 1 : NaN));
    expect(linePoints(xs.subarray(0, 100), sparse, 0, 100, 280).every(point => point.y === 1)).toBe(true);
    expect([
      usualSpacing(sparse),
      usualSpacing(of(1, NaN, 1, 1, 1)),
      usualSpacing(of(NaN)),
      usualSpacing(of()),
    ]).toEqual([10, 1, 1, 1]);
  });

  it('keeps to its range', () => {
    expect(linePoints(of(1, 2, 3, 4), of(1, 2, 3, 4), 2, 3, 280).map(point => point.x)).toEqual([2, 3]);
  });

  it('has the column’s extent, whatever the number of points', () => {
    const column = fc.array(
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }), fc.constant(NaN)),
      { minLength: 1, maxLength: 500 },
    );
    fc.assert(
      fc.property(column, fc.integer({ min: 1, max: 40 }), (values, buckets) => {
        const ys = Float64Array.from(values);
        const drawn = linePoints(xs.subarray(0, ys.length), ys, 0, ys.length - 1, buckets);
        expect(extent([Float64Array.from(drawn, point => point.y)])).toEqual(extent([ys]));
      }),
    );
  });

  it('takes well under a second for 60 metrics of 100,000 steps', () => {
    const long = Float64Array.from({ length: 100_000 }, (_, i) => i);
    const noisy = Float64Array.from(long, x => Math.sin(x * 1.7) + x / 1e4);
    const started = performance.now();
    for (let metric = 0; metric < 60; metric++) linePoints(long, smooth(noisy, 0.6), 0, 100_000, 280);
    expect(performance.now() - started).toBeLessThan(3000);
  });
});

describe('newest values', () => {
  it('are the last finite ones, up to a row', () => {
    expect([lastFinite(of(1, 2, NaN)), lastFinite(of(1, 2, 3), 1), lastFinite(of(NaN)), lastFinite(of())]).toEqual([
      1, 1, -1, -1,
    ]);
  });

  it('change over ten steps, and over as many as there are between two of a rarer metric', () => {
    const steps = Float64Array.from({ length: 30 }, (_, i) => i + 1);
    expect(
      changeOverTenSteps(
        steps,
        Float64Array.from(steps, step => step * 2),
      ),
    ).toBe(20);
    expect(
      changeOverTenSteps(
        steps,
        Float64Array.from(steps, step => (step % 15 === 0 ? step : NaN)),
      ),
    ).toBe(15);
    expect(changeOverTenSteps(steps.subarray(0, 5), of(1, 2, 3, 4, 5))).toBeNaN();
    expect(changeOverTenSteps(steps, of())).toBeNaN();
  });
});

describe('axes', () => {
  it('hold the data and end at round values', () => {
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

  it('stay while the data fit and fill a third, else move', () => {
    const first = valueRange(0, 3.7, null);
    expect(first).toEqual({ min: 0, max: 4, step: 1 });
    expect(valueRange(0, 3.9, first)).toBe(first);
    expect(valueRange(0, 4.1, first).max).toBeGreaterThan(4);
    expect(valueRange(0, 1.2, first).max).toBeLessThan(4);
  });

  it('give a constant a place in the middle', () => {
    expect(valueRange(0, 0, null)).toMatchObject({ min: -0.5, max: 0.5 });
    const { min, max } = valueRange(1e-6, 1e-6, null);
    expect(min).toBeLessThan(1e-6);
    expect(max).toBeGreaterThan(1e-6);
  });

  it('start at zero where zero is near, and have a clean tick there', () => {
    expect(valueRange(1, 10, null).min).toBe(0);
    expect(valueRange(-10, -1, null).max).toBe(0);
    expect(ticksOf(valueRange(-0.07, 0.05, null), true)).toContain(0);
    expect(ticksOf({ min: 0.6, max: 1.4, step: 0.2 }, false)).toEqual([0.8, 1.2]);
  });

  it('of progress grow in steps and end with the run', () => {
    expect([1, 9, 11, 57, 99, 140].map(last => progressRange(last, 200).max)).toEqual([10, 10, 12, 60, 100, 140]);
    expect(progressRange(180, 200).max).toBe(200);
    expect(progressRange(10, null).max).toBe(10);
    expect(progressRange(4, 5).max).toBe(5);
    expect(progressRange(7, 5).max).toBe(10); // a run that went past its plan
    expect(progressTicks({ min: 0, max: 150, step: 75 }, false)).toEqual([0, 75, 150]);
    expect(progressTicks(progressRange(24, 25), false)).toEqual([0, 13, 25]);
    expect(progressTicks({ min: 0, max: 150, step: 75 }, true)).toEqual([0, 20, 40, 60, 80, 100, 120, 140]);
  });
});

describe('the arrangement of charts', () => {
  const titles = (keys: string[], group: string) =>
    arrange(keys)
      .find(each => each.id === group)
      ?.charts.map(chart => chart.title);

  it('begins with the four that matter, with or without data', () => {
    expect(titles([], 'pinned')).toEqual(['success', 'reward', 'in-group reward std', 'entropy']);
    const [success, reward] = arrange([
      'train/A/success',
      'val-env/A/success',
      'critic/rewards/mean',
      'charts/avg_episode_return',
    ])[0].charts;
    expect(success.lines).toEqual([
      { key: 'train/A/success', label: 'train' },
      { key: 'val-env/A/success', label: 'val' },
    ]);
    expect(reward.lines.map(each => each.key)).toEqual(['critic/rewards/mean']);
  });

  it('names the tags where there are several', () => {
    const [success] = arrange(['train/A/success', 'train/B/success'])[0].charts;
    expect(success.lines.map(each => each.label)).toEqual(['train A', 'train B']);
  });

  it('shows every key once, new ones under their prefix', () => {
    const keys = [
      'critic/score/mean',
      'critic/score/max',
      'critic/score/min',
      'response_length/mean',
      'response_length/min',
      'response_length/max',
      'actor/grad_norm',
      'actor/brand_new',
      'new_family/x/y',
      'loose',
      'wall_s',
      'train/A/num_actions',
    ];
    const shown = arrange(keys).flatMap(group =>
      group.charts.flatMap(({ lines, band }) => [
        ...lines.map(each => each.key),
        ...(band ? [band.low, band.high] : []),
      ]),
    );
    expect([...shown].sort()).toEqual(keys.filter(key => key !== 'wall_s').sort());
    expect(titles(keys, 'new_family')).toEqual(['x · y']);
    expect(titles(keys, 'other')).toEqual(['loose']);
    expect(arrange(keys).find(group => group.id === 'lengths')!.charts[0].band).toEqual({
      low: 'response_length/min',
      high: 'response_length/max',
    });
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

  it('stand for what charts show, in order', () => {
    const marks = marksOf([event(9, 'alarm'), event(2, 'checkpoint'), event(3, 'state'), event(4, 'setting')], each =>
      each.step === 4 ? NaN : each.step,
    );
    expect(marks.map(mark => [mark.kind, mark.x])).toEqual([
      ['checkpoint', 2],
      ['alarm', 9],
    ]);
  });

  it('are thinned, the graver first', () => {
    const marks = marksOf(
      [...Array.from({ length: 1000 }, (_, i) => event(i, 'checkpoint')), event(500, 'alarm')],
      each => each.step,
    );
    const kept = thinned(marks, 50);
    expect(kept.length).toBeLessThanOrEqual(21);
    expect(kept.find(mark => mark.x === 500)?.kind).toBe('alarm');
    expect(kept.every((mark, i) => i === 0 || mark.x - kept[i - 1].x >= 50)).toBe(true);
  });
});
