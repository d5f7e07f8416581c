// @vitest-environment happy-dom
// The comparison of six real runs of two configurations: charts, table and requests.
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  compareColour,
  compareColumns,
  compareGrew,
  compareOpen,
  compareReady,
  type CompareSnapshot,
} from '../../../../extension/protocol/compare-page';
import {
  groupCurve,
  outcomes,
  pointsOf,
  resampled,
  thinnedPoints,
  valueAt,
} from '../../../../extension/run-data/charts/group-curves';
import { positionsOf } from '../../../../extension/run-data/charts/run-axis';
import fc from 'fast-check';
import { hue } from '../../../../extension/common/palette';
import { colourOfRun } from '../../../../extension/run-data/run-colour';
import { comparedOf } from '../../../../webview/compare/compared-metrics';
import { startCompare } from '../../../../webview/compare/page';
import { comparedHost } from '../../../e2e/preview/compared-host';
import { freshPage, pageHost, press, recordingPlotter, settle, stubVisibility } from '../page-host';
import { partial } from '../../../support/partial';

const csv = readFileSync('test/experiments/results/1-filter.csv', 'utf8');
const metrics = readFileSync('docs/METRICS.md', 'utf8');
const key = 'val-env/QuickFrozenLake/success';

describe('curves over seeds', () => {
  it('are the mean, with Student’s interval from three seeds on', () => {
    const a = [
      { x: 0, y: 1 },
      { x: 2, y: 3 },
    ];
    const b = [{ x: 0, y: 3 }];
    const c = [{ x: 0, y: 2 }];
    const { mean, band } = groupCurve([a, b, c]);
    expect(mean).toEqual([
      { x: 0, y: 2 },
      { x: 2, y: 3 },
    ]);
    expect(band!.high[0].y - 2).toBeCloseTo(4.303 / Math.sqrt(3), 3); // t with two degrees of freedom × 1 / √3
    expect(band!.low[1].y).toBeNaN();
    expect(groupCurve([a, b]).band).toBeUndefined();
  });

  it('have their latest and highest values', () => {
    const curve = (...values: number[]) => ({
      steps: Float64Array.from(values.keys()),
      values: Float64Array.from(values),
    });
    const { final, best } = outcomes([curve(1, 5, Number.NaN), curve(9, 3), curve(Number.NaN)]);
    expect([final!.mean, final!.n, best!.mean]).toEqual([4, 2, 7]);
    expect(outcomes([curve()])).toEqual({ final: null, best: null });
    expect(pointsOf(curve(1, Number.NaN, 2), 0)).toEqual([
      { x: 0, y: 1 },
      { x: 2, y: 2 },
    ]);
  });

  it('are averaged at common positions, interpolated within a run and never beyond its ends', () => {
    const slow = [
      { x: 0, y: 0 },
      { x: 10, y: 10 },
    ];
    expect(resampled(slow, 0, 20, 4)).toEqual([
      { x: 2.5, y: 0 },
      { x: 7.5, y: 7.5 },
      { x: 12.5, y: 10 },
    ]);
    expect([valueAt(slow, 5), valueAt(slow, 10), valueAt(slow, 11), valueAt(slow, -1)]).toEqual([5, 10, NaN, NaN]);
  });

  it('keep the lowest and the highest point when thinned, and their order', () => {
    const values = fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 20 }), (ys, cells) => {
        const points = ys.map((y, x) => ({ x, y }));
        const kept = thinnedPoints(points, 0, ys.length, cells);
        expect(kept.length).toBeLessThanOrEqual(Math.max(cells * 2, 2));
        expect(Math.min(...kept.map(({ y }) => y))).toBe(Math.min(...ys));
        expect(Math.max(...kept.map(({ y }) => y))).toBe(Math.max(...ys));
        expect(kept.every(({ x }, i) => i === 0 || kept[i - 1].x < x)).toBe(true);
      }),
    );
  });

  it('have positions by steps, summed tokens, and seconds that never run backwards', () => {
    const curve = { steps: Float64Array.of(1, 2, 3), values: Float64Array.of(10, Number.NaN, 5) };
    expect([...positionsOf('step', curve)]).toEqual([1, 2, 3]);
    expect([...positionsOf('tokens', curve)]).toEqual([10, 10, 15]);
    expect([...positionsOf('time', curve)]).toEqual([10, 10, 10]);
  });

  it('have the colours of their runs; groups of equal colour have different dashes', () => {
    const runs = Array.from({ length: 12 }, (_, i) => ({
      run: { id: `r${i}`, ...(i < 2 && { colour: 'sky' as const }) },
      keys: [],
      marks: [],
    }));
    const groups = runs.map((_, i) => ({ label: '', members: [i], values: [] }));
    const found = comparedOf(partial<CompareSnapshot>({ runs, groups, keys: [], meanings: {} })).groups;
    expect(found.slice(0, 2).map(({ colour, dash }) => [colour, dash])).toEqual([
      [hue.sky, 0],
      [hue.sky, 1],
    ]);
    expect(found.map(({ colour }) => colour).slice(2)).toEqual(
      runs.slice(2).map(({ run }) => colourOfRun(run as { id: string })),
    );
    expect(new Set(found.map(({ colour, dash }) => `${colour} ${dash}`)).size).toBe(12);
  });
});

describe('the page', () => {
  let root: HTMLElement;
  let host: ReturnType<typeof pageHost>;
  let drawn: ReturnType<typeof recordingPlotter>['drawn'];
  let visibility: ReturnType<typeof stubVisibility>;

  beforeEach(async () => {
    visibility = stubVisibility();
    root = freshPage();
    host = pageHost(comparedHost(csv, metrics));
    const recording = recordingPlotter();
    drawn = recording.drawn;
    startCompare(host, root, recording.plotter);
    await settle();
    await settle();
  });
  const chart = (name: string) => drawn.get(root.querySelector(`[data-chart="${name}"] canvas`)!)!;

  it('draws one line per configuration with its band, and each seed as a thin line behind', () => {
    const { lines, axis } = chart(key);
    expect(axis).toBe('step');
    expect(lines.filter(({ quiet }) => quiet)).toHaveLength(6);
    const bold = lines.filter(({ quiet }) => !quiet);
    expect(bold.map(({ label }) => label)).toEqual(['filter on', 'filter off']);
    expect(new Set(bold.map(({ colour }) => colour)).size).toBe(2);
    const first = lines
      .filter(({ quiet }) => quiet)
      .slice(0, 3)
      .map(({ points }) => points[0].y);
    expect(bold[0].points[0].y).toBeCloseTo(first.reduce((sum, y) => sum + y, 0) / 3, 9);
    expect(bold.every(({ band, points }) => band!.low.length === points.length)).toBe(true);
  });

  it('shows each result and the keys that differ, and opens runs and the difference', () => {
    const rows = [...root.querySelectorAll('.compare-table tbody tr')].map(row => row.textContent);
    const heads = [...root.querySelectorAll('.compare-table thead th')].map(cell => cell.textContent);
    expect(heads.slice(1, 6)).toEqual([
      'runs',
      'Success, final',
      'Success, best',
      'rollout_filter_value',
      'rollout_filter_include_zero',
    ]);
    expect(rows[0]).toMatch(
      /^filter onseed 10000seed 1010000seed 2010000baseline\d+(\.\d)? % ± \d+(\.\d+)? %.*0\.9false$/,
    );
    expect(rows[1]).toMatch(/^filter offseed .*difference\d/);
    const links = [...root.querySelectorAll<HTMLElement>('button.link')];
    links[1].click();
    links.at(-1)!.click();
    expect(host.sent.filter(({ method }) => method === compareOpen.method).map(({ params }) => params)).toEqual([
      { dashboard: '/runs/filter on-1010000' },
      { difference: ['/runs/filter on-10000', '/runs/filter off-10000'] },
    ]);
  });

  it('names the run and the step from which a run was forked', async () => {
    const stored = comparedHost(csv, metrics);
    const forked = pageHost({
      answer(method, params) {
        const answer = stored.answer(method, params);
        if (method === compareReady.method) {
          const { runs } = answer as CompareSnapshot;
          runs[0].run.parent = { run: runs.at(-1)!.run.id, step: 10 };
        }
        return answer;
      },
    });
    root = freshPage();
    startCompare(forked, root, recordingPlotter().plotter);
    await settle();
    await settle();
    const lineage = [...root.querySelectorAll('.compare-table .lineage')].map(({ textContent }) => textContent);
    expect(lineage).toEqual([expect.stringMatching(/^fork of 1-filter filter off seed \d+, step 10$/)]);
  });

  it('shows the step under the pointer in all charts, with the values there', async () => {
    const values = () => [...root.querySelectorAll('.chart-value')].map(value => value.textContent);
    const crosshairs = () => [...root.querySelectorAll<HTMLElement>('.chart:not([data-empty]) .crosshair')];
    const latest = values();
    const area = root.querySelector('.chart-plot')!;
    area.dispatchEvent(new MouseEvent('pointermove'));
    await settle();
    expect(crosshairs().every(({ hidden, textContent }) => !hidden && textContent === '0')).toBe(true);
    expect(values()).not.toEqual(latest);
    expect(root.querySelector('.chart-value')!.getAttribute('title')).toBe('filter on');
    area.dispatchEvent(new MouseEvent('pointerleave'));
    await settle();
    expect(crosshairs().every(({ hidden }) => hidden)).toBe(true);
    expect(values()).toEqual(latest);
  });

  const plot = () => root.querySelector<HTMLElement>(`[data-chart="${key}"] .chart-plot`)!;
  const view = () => (host.getState() as { view: Record<string, unknown> }).view;
  const row = (index: number) => root.querySelectorAll('.compare-table tbody tr')[index];
  const bold = () => chart(key).lines.filter(({ quiet }) => !quiet);

  it('zooms all charts by keys, and shows the whole axis again', async () => {
    const whole = chart(key).x;
    press('+', plot());
    await settle();
    const other = [...drawn.values()].find(({ title }) => title !== chart(key).title)!;
    expect([chart(key).x.max - chart(key).x.min, other.x]).toEqual([(whole.max - whole.min) / 2, chart(key).x]);
    press('ArrowLeft', plot());
    press('0', plot());
    await settle();
    expect([chart(key).x, view().zoom]).toEqual([whole, null]);
  });

  it('has a logarithmic scale and a large size for each chart', async () => {
    press('l', plot());
    press('Enter', plot());
    await settle();
    expect([chart(key).log, chart(key).large]).toEqual([true, true]);
    expect(root.querySelectorAll('.chart.large')).toHaveLength(1);
    expect(root.querySelector('.compare-legend')!.textContent).toMatch(/filter on.*%.*filter off.*%/);
    expect(view()).toMatchObject({ log: [key], enlarged: [key] });
  });

  it('hides runs and groups; two seeds are drawn by themselves, without an interval', async () => {
    const boxes = (index: number) => [...row(index).querySelectorAll<HTMLInputElement>('input[type=checkbox]')];
    const untick = async (box: HTMLInputElement) => {
      box.checked = false;
      box.dispatchEvent(new Event('change'));
      await settle();
    };
    await untick(boxes(0)[1]);
    expect(bold().map(({ label, band }) => [label, band !== undefined])).toEqual([
      ['filter on', false],
      ['filter on', false],
      ['filter off', true],
    ]);
    expect(boxes(0)[0].indeterminate).toBe(true);
    await untick(boxes(0)[0]);
    expect(bold().map(({ label }) => label)).toEqual(['filter off']);
    const restore = [...root.querySelectorAll<HTMLElement>('vscode-button')].find(each =>
      each.textContent?.includes('Show 3 hidden runs'),
    )!;
    restore.click();
    await settle();
    expect(bold()).toHaveLength(2);
  });

  it('recolours the runs of a group on all pages', async () => {
    row(0).querySelector<HTMLElement>('.swatch-button')!.click();
    const entry = [...document.querySelectorAll<HTMLElement>('.menu-item')].find(each =>
      each.textContent?.includes('Yellow'),
    )!;
    entry.click();
    await settle();
    expect(bold()[0].colour).toBe(chart(key).theme.palette[6]);
    const { params } = host.params.find(({ method }) => method === compareColour.method)!;
    const folders = ['10000', '1010000', '2010000'].map(seed => `/runs/filter on-${seed}`);
    expect(params).toEqual({ folders, colour: 'yellow' });
  });

  it('marks the events of shown runs at the steps to which they belong, without checkpoints', async () => {
    const marks = () => chart(key).marks.map(({ kind, x }) => [kind, x]);
    expect(marks()).toEqual([
      ['setting', 10],
      ['alarm', 20],
    ]);
    row(0).querySelector<HTMLInputElement>('input[type="checkbox"]')!.click();
    await settle();
    expect(marks()).toEqual([]);
  });

  it('shows differences from a baseline in charts and table', async () => {
    const before = bold().map(({ points }) => points.at(-1)!.y);
    [...row(0).querySelectorAll<HTMLElement>('.row-actions .link')]
      .find(each => each.textContent === 'baseline')!
      .click();
    await settle();
    const [base, other] = bold().map(({ points }) => points.at(-1)!.y);
    expect([base, other]).toEqual([0, before[1] - before[0]]);
    expect(row(0).querySelector('.difference')).toBeNull();
    expect(row(1).querySelector('.difference')!.textContent).toMatch(/^[+−][\d.]+ pp$/);
    const toggle = [...root.querySelectorAll<HTMLElement>('vscode-button')].find(each =>
      each.textContent?.includes('Differences'),
    )!;
    toggle.click();
    await settle();
    expect(bold().map(({ points }) => points.at(-1)!.y)).toEqual(before);
  });

  it('draws by tokens and by time, at common positions', async () => {
    const choose = async (axis: string) => {
      const choice = root.querySelector<HTMLElement & { value: string }>('[aria-label="X axis"]')!;
      choice.value = axis;
      choice.dispatchEvent(new Event('change'));
      await settle();
      await settle();
    };
    await choose('tokens');
    expect(chart(key).x.max).toBeGreaterThan(10_000);
    expect(bold().every(({ band }) => band !== undefined)).toBe(true);
    await choose('time');
    expect([chart(key).axis, view().axis]).toEqual(['time', 'time']);
  });

  it('holds a canvas only on screen', async () => {
    const area = root.querySelector(`[data-chart="${key}"]`)!;
    visibility.show(area, false);
    await settle();
    expect(chart(key)).toBeUndefined();
    visibility.show(area, true);
    await settle();
    expect(chart(key)).not.toBeUndefined();
  });

  it('searches metrics, closes sections and chooses the metric of the table', async () => {
    const charts = () => [...root.querySelectorAll('.chart')].map(card => (card as HTMLElement).dataset.chart);
    const search = root.querySelector<HTMLElement & { value: string }>('.search')!;
    const type = (text: string) => {
      search.value = text;
      search.dispatchEvent(new Event('input'));
    };
    const all = charts().length;
    type('quickfrozenlake/success');
    expect(charts().every(id => id!.includes('success'))).toBe(true);
    type('no such metric');
    expect(root.querySelector('main .notice')!.textContent).toContain('“no such metric”');
    type('');
    await settle();
    expect(charts()).toHaveLength(all);
    expect(chart(key)).not.toBeUndefined();
    const section = root.querySelector('details')!;
    section.open = false;
    section.dispatchEvent(new Event('toggle'));
    expect(host.getState()).toMatchObject({ view: { open: ['sweep', 'policy', 'collapse'] } });
    const choice = root.querySelector<HTMLElement & { value: string }>('[aria-label="Metric of the table"]')!;
    choice.value = choice.querySelector('vscode-option')!.getAttribute('value')!;
    choice.dispatchEvent(new Event('change'));
    expect(host.getState()).toMatchObject({ view: { metric: choice.value } });
    await settle();
    expect(root.querySelector('.compare-table td.number')!.textContent).toMatch(/\d/);
  });

  it('reloads when runs have grown, and shows errors', async () => {
    const count = (method: string) => host.asked.filter(each => each === method).length;
    const before = [count(compareReady.method), count(compareColumns.method)];
    host.send(compareGrew, null);
    await settle();
    expect(count(compareReady.method)).toBe(before[0] + 1);
    expect(count(compareColumns.method)).toBeGreaterThan(before[1]);
    host.refuse(compareReady.method, 'the disk is gone');
    host.send(compareGrew, null);
    await settle();
    expect(root.querySelector('[role=alert]')!.textContent).toContain('the disk is gone');
  });
});
