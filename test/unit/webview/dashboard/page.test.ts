// @vitest-environment happy-dom
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  dashboardColumns,
  dashboardCommand,
  dashboardExport,
  dashboardLines,
  dashboardRead,
  dashboardReady,
  dashboardView,
  type Export,
} from '../../../../extension/protocol/dashboard-page';
import type { MetricNumbers } from '../../../../extension/run-data/metric-segments';
import { paletteOf } from '../../../../webview/shared/run-colours';
import { hostileTexts, metricLines, runAt, runEvents } from '../../../e2e/preview/data';
import type { PlotLine } from '../../../../extension/run-data/charts/plot-data';
import type { Mark } from '../../../../extension/run-data/charts/chart-marks';
import { startDashboard } from '../../../../webview/dashboard/page';
import { freshPage, pageHost, press, recordingPlotter, settle } from '../page-host';
import { click, expanded, groups, open, stubDrawing, type Visibility } from './open-dashboard';
import { reinterpret } from '../../../support/partial';

let visibility: Visibility;
beforeEach(() => (visibility = stubDrawing()));

/** Lines as the host sends them, numbers only. */
const numbers = (count: number): MetricNumbers[] =>
  metricLines(count).map(({ time: _, ...line }) => reinterpret<MetricNumbers>(line));
describe('the dashboard', () => {
  it('shows the run, its state and values', async () => {
    const { text } = await open('running');
    expect(text('h1')).toBe('sokoban starpo-s');
    expect(text('.status')).toBe('running · rollout');
    expect(text('.facts')).toBe('step140 / 200success41.2 %ETA21 m 00 stokens/s2.31 k');
  });

  it('says what is not shown of another trainer’s run, as text', async () => {
    const { host, root } = await open('running');
    expect(root.querySelector('.left-out')).toBeNull();
    const sentences = ['3 rollouts of step 2 are not shown', hostileTexts[0]];
    host.send(dashboardLines, { run: runAt(140, 200, { left_out: sentences }), lines: [], events: [] });
    await settle();
    expect(root.querySelector('.left-out summary')!.textContent).toBe('▲ Not everything is shown: 2 reasons');
    expect([...root.querySelectorAll('.left-out li')].map(each => each.textContent)).toEqual(sentences);
    expect(root.querySelector('.left-out li *')).toBeNull();
  });

  it('begins with an overview and draws it', async () => {
    const { root, plot, card } = await open('running');
    expect([...root.querySelectorAll('[data-group="pinned"] h3')].map(h3 => h3.textContent)).toEqual([
      ...['Success', 'Reward', 'In-group reward std', 'Entropy', 'Return', 'Time per step'],
    ]);
    expect(plot('success').lines.map(line => line.label)).toEqual(['train', 'val']);
    expect(plot('success').y).toEqual({ min: 0, max: 1, step: 0.5 });
    expect(plot('entropy').lines[0].points).toHaveLength(140);
    expect(card('reward').querySelector('.chart-values')!.textContent).toMatch(/^1\.26\+0\.519$/);
  });

  it('shows an evaluation as a table with intervals, and its episodes as progress', async () => {
    const { host, root, text } = await open('running');
    const run = runAt(0, 0, { state: 'finished', episodes: { done: 128, of: 128 } });
    const line = { step: 141, 'val-env/CoordSokoban/success': 0.5, 'val-env/CoordSokoban/num_episodes': 100 };
    host.send(dashboardLines, { run: { ...run, live: false }, lines: [line], events: [] });
    await settle();
    expect(root.querySelector('.chart')).toBeNull();
    expect(text('.facts')).toContain('episode128 / 128');
    const rows = [...root.querySelectorAll('.run-table tbody tr')];
    const success = rows.find(each => each.textContent.startsWith('val-env/CoordSokoban/success'))!;
    const cells = [...success.querySelectorAll('td')].map(cell => cell.textContent);
    expect(cells.slice(0, 2)).toEqual(['50.0 %', '40.4 % … 59.6 %']);
  });

  it('shows key and meaning of a chart', async () => {
    const { card } = await open('running');
    expect(card('entropy').querySelector('.chart-title')!.getAttribute('title')).toMatch(
      /^Entropy\nactor\/entropy\nEntropy of the next-token distribution/,
    );
    expect(card('entropy').querySelector('canvas')!.getAttribute('aria-label')).toBe(
      'Chart of Entropy. Entropy: 0.630 at step 140',
    );
  });

  it('breaks the line at a non-finite value', async () => {
    const { plot } = await open('running');
    expect(plot('gradient norm').lines[0].points.filter(({ y }) => Number.isNaN(y))).toHaveLength(1);
  });

  it('grows with new lines, without a new snapshot', async () => {
    const { host, plot, text } = await open('running');
    const lines = numbers(143).slice(140);
    host.send(dashboardLines, { run: runAt(143, 200), lines, events: [] });
    await settle();
    expect(plot('entropy').lines[0].points).toHaveLength(143);
    expect(text('.facts')).toContain('step143 / 200');
    expect(host.asked.filter(method => method === dashboardReady.method)).toHaveLength(1);
  });

  it('draws only visible charts', async () => {
    const { host, drawn, card } = await open('running');
    const canvas = card('entropy').querySelector('canvas')!;
    visibility.show(card('entropy'), false);
    expect(drawn.has(canvas)).toBe(false);
    host.send(dashboardLines, { run: runAt(141, 200), lines: numbers(141).slice(140), events: [] });
    await settle();
    expect(drawn.has(canvas)).toBe(false);
    visibility.show(card('entropy'), true);
    await settle();
    expect(drawn.get(canvas)!.lines[0].points).toHaveLength(141);
  });

  it('shows one crosshair and one step’s values in all charts', async () => {
    const { root, card } = await open('running');
    const plotArea = card('reward').querySelector('.chart-plot')!;
    const move = new PointerEvent('pointermove', { bubbles: true });
    Object.defineProperty(move, 'offsetX', { value: 69.4 });
    plotArea.dispatchEvent(move);
    await settle();
    const labels = new Set(
      [...root.querySelectorAll<HTMLElement>('.crosshair')].filter(each => !each.hidden).map(each => each.textContent),
    );
    expect(labels).toEqual(new Set(['69']));
    expect(card('entropy').querySelector('strong')!.textContent).toBe('0.996');
    plotArea.dispatchEvent(new PointerEvent('pointerleave'));
    await settle();
    expect(card('entropy').querySelector('strong')!.textContent).toBe('0.630');
  });

  it('moves the crosshair by arrow keys', async () => {
    const { card } = await open('running');
    const plotArea = card('reward').querySelector('.chart-plot')!;
    press('ArrowLeft', plotArea);
    await settle();
    expect(card('entropy').querySelector('.crosshair')!.textContent).toBe('140');
    press('PageUp', plotArea);
    await settle();
    expect(card('entropy').querySelector('.crosshair')!.textContent).toBe('130');
  });

  it('leaves outliers out of the y axis by a key, says so in the head, and remembers it', async () => {
    const { host, card } = await open('running');
    const [plotArea, values] = ['.chart-plot', '.chart-values'].map(part => card('entropy').querySelector(part)!);
    expect(values.textContent).not.toContain('clipped');
    press('c', plotArea);
    await settle();
    expect(values.textContent).toContain('clipped');
    expect(host.getState()).toMatchObject({ view: { clipped: ['entropy'] } });
    press('c', plotArea);
    await settle();
    expect(values.textContent).not.toContain('clipped');
  });

  it('enlarges a chart, and remembers it', async () => {
    const { host, card } = await open('running');
    click(card('entropy').querySelector('.chart-title'));
    await settle();
    expect(card('entropy').classList.contains('large')).toBe(true);
    expect(card('entropy').querySelector('.chart-explanation')!.textContent).toContain('actor/entropy');
    expect(host.getState()).toMatchObject({
      folder: '/work/ragen/.ragen/runs/20260203-0930-sokoban-a1f3',
      view: { enlarged: ['entropy'] },
    });
    const again = await open('running', host.getState());
    expect(again.card('entropy').classList.contains('large')).toBe(true);
    press('Escape');
    await settle();
    expect(again.card('entropy').classList.contains('large')).toBe(false);
  });

  it('drops settings of another version', async () => {
    const { card } = await open('running', { folder: '/x', schema: 99, view: { enlarged: ['entropy'], open: 3 } });
    expect(card('entropy').classList.contains('large')).toBe(false);
  });

  it('smooths, with the raw values behind', async () => {
    const { root, plot } = await open('running');
    const slider = root.querySelector<HTMLInputElement>('.smoothing input')!;
    slider.value = '0.9';
    slider.dispatchEvent(new Event('input'));
    await settle();
    const [raw, smoothed] = plot('entropy').lines;
    expect([raw.alpha, smoothed.alpha]).toEqual([0.28, 1]);
    const roughness = (line: PlotLine) =>
      line.points.reduce((sum, point, i) => sum + (i > 0 ? Math.abs(point.y - line.points[i - 1].y) : 0), 0);
    expect(roughness(smoothed)).toBeLessThan(roughness(raw) / 2);
  });

  it('can use time as the x axis', async () => {
    const { root, plot } = await open('running');
    const axis = root.querySelector<HTMLElement & { value: string }>('vscode-dropdown')!;
    axis.value = 'time';
    axis.dispatchEvent(new Event('change'));
    await settle();
    expect(plot('entropy').axis).toBe('time');
    expect(plot('entropy').lines[0].points.at(-1)!.x).toBeCloseTo(metricLines(140)[139].wall_s!, 6);
  });

  it('searches names and keys', async () => {
    const { root } = await open('running');
    const field = root.querySelector<HTMLElement & { value: string }>('.search')!;
    const shown = () => [...root.querySelectorAll('.chart h3')].map(h3 => h3.textContent);
    field.value = 'ppo_KL';
    field.dispatchEvent(new Event('input'));
    await settle();
    expect(shown()).toEqual(['KL']);
    field.value = 'no such';
    field.dispatchEvent(new Event('input'));
    await settle();
    expect(root.querySelector('.notice')!.textContent).toContain('No metric of this run matches “no such”');
  });

  it('folds a group', async () => {
    const { root } = await open('running');
    const policy = root.querySelector<HTMLElement>('[data-group="policy"]')!;
    expect(policy.querySelector('.chart')).not.toBeNull();
    click(policy.querySelector('.fold'));
    await settle();
    expect(policy.querySelector('.chart')).toBeNull();
    expect(policy.querySelector('.fold')!.getAttribute('aria-expanded')).toBe('false');
  });

  it('has a table for each chart and one for the run', async () => {
    const { root, card } = await open('running');
    click(card('entropy').querySelector('[title="Table of Entropy"]'));
    await settle();
    const rows = card('entropy').querySelectorAll('tbody tr');
    expect(rows).toHaveLength(140);
    expect(rows[0].textContent).toBe('1400.630');
    press('t');
    await settle();
    const keys = [...root.querySelectorAll('.run-table th[scope="row"]')].map(th => th.textContent);
    const logged = new Set(
      metricLines(140).flatMap(line =>
        Object.keys(line).filter(key => typeof line[key] === 'number' && !['step', 'wall_s'].includes(key)),
      ),
    );
    expect(new Set(keys)).toEqual(logged);
    expect(root.querySelector('.chart')).toBeNull();
    press('t');
    await settle();
    expect(root.querySelectorAll('.chart').length).toBeGreaterThan(20);
  });

  it('marks events and shows their text on a click', async () => {
    const { root, plot, card } = await open('running');
    expect(new Set(plot('entropy').marks.map(({ kind }: Mark) => kind))).toEqual(
      new Set(['checkpoint', 'version', 'setting', 'alarm']),
    );
    const at = new MouseEvent('click', { bubbles: true });
    Object.defineProperties(at, { offsetX: { value: 113 }, offsetY: { value: 95 } });
    card('entropy').querySelector('.chart-plot')!.dispatchEvent(at);
    await settle();
    expect(root.querySelector('.event-table .opened')!.textContent).toContain('"baseline": 2.11');
    expect(card('entropy').classList.contains('large')).toBe(false);
  });

  it('of a run that has ended shows its results and next steps in a banner, which can be closed', async () => {
    const { root, host, text } = await open('finished');
    expect(text('.ending h2')).toBe('The run has finished');
    expect(text('.ending .facts')).toBe(
      'Best validation44.7 % at step 120 (step-000120)Last validation41.2 % at step 140 (no checkpoint)Duration49 m 00 sCost6.53 CPU hours · 6.79 M tokens',
    );
    const buttons = [...root.querySelectorAll('.ending vscode-button')];
    for (const button of buttons) click(button);
    const commands = host.sent.filter(({ method }) => method === dashboardCommand.method).map(({ params }) => params);
    expect(commands).toEqual(['compare', 'evaluate', 'fork', 'export'].map(command => ({ command })));
    await settle();
    expect(root.querySelector('.ending')).toBeNull();
    host.send(dashboardLines, { run: runAt(141, 200), lines: numbers(141).slice(140), events: [] });
    await settle();
    expect(root.querySelector('.ending')).toBeNull();
  });

  it('shows no banner while the run is in training', async () => {
    const { root } = await open('running');
    expect(root.querySelector('.ending')).toBeNull();
  });

  it('sends the commands of the buttons', async () => {
    const { root, host } = await open('running');
    for (const button of root.querySelectorAll('.buttons vscode-button')) click(button);
    const sent = host.sent
      .filter(({ method }) => method === dashboardCommand.method)
      .map(({ method, params }) => [method, (params as { command: string }).command]);
    expect(sent).toEqual(
      ['pause', 'stop', 'settings', 'collapse', 'timeline', 'log', 'episodes'].map(command => [
        dashboardCommand.method,
        command,
      ]),
    );
  });

  it.each([
    [
      { state: 'paused' as const },
      true,
      'paused',
      ['Resume', 'Stop', 'Change settings…', 'Collapse', 'Timeline', 'Log', 'Episodes'],
    ],
    [{}, false, 'interrupted', ['Resume', 'Collapse', 'Timeline', 'Log', 'Episodes']],
    [{ state: 'finished' as const }, false, 'finished', ['Collapse', 'Timeline', 'Log', 'Episodes']],
    [{ state: 'stopping' as const }, true, 'stopping', ['Collapse', 'Timeline', 'Log', 'Episodes']],
  ])('of a run with %j, live %s, shows %s and offers %j', async (status, live, shownLabel, names) => {
    const { root, host, text } = await open('running');
    host.send(dashboardLines, { run: { ...runAt(140, 200, status), live }, lines: [], events: [] });
    await settle();
    expect(text('.status')).toBe(shownLabel);
    expect(
      [...root.querySelectorAll('.buttons vscode-button')].map(
        each => each.getAttribute('aria-label') ?? each.textContent,
      ),
    ).toEqual(names);
  });

  it('says on which host of a cluster a run is, and that its job is queued', async () => {
    const { root, host, text } = await open('empty');
    const job = { address: 'http://head:8265', id: 'ragen-1' };
    const queued = { ...runAt(0, 200, { state: 'starting', phase: 'queued' }), job };
    const place = () => [...root.querySelectorAll('.facts div')].find(fact => fact.textContent?.startsWith('on'));
    host.send(dashboardLines, { run: queued, lines: [], events: [] });
    await settle();
    expect(text('.status')).toBe('queued');
    expect(text('.notice')).toContain('queued as Ray job ragen-1');
    expect(root.querySelector('.buttons vscode-button')?.getAttribute('aria-label')).toBe('Stop');
    expect(place()?.textContent).toBe('onhead');
    host.send(dashboardLines, { run: { ...runAt(1, 200), job: { ...job, host: 'node-7' } }, lines: [], events: [] });
    await settle();
    expect(place()?.textContent).toBe('onnode-7');
    expect(place()?.getAttribute('title')).toBe('Ray job ragen-1 of http://head:8265');
  });

  it('explains the wait before the first step, and then updates by itself', async () => {
    const { root, host, text, plot } = await open('empty');
    expect(text('.notice')).toContain('No step has finished yet');
    expect(root.querySelector<HTMLElement>('.controls')!.hidden).toBe(true);
    host.send(dashboardLines, { run: runAt(1, 200), lines: numbers(1), events: [] });
    await settle();
    expect(text('.notice')).toBe('');
    expect(root.querySelector<HTMLElement>('.controls')!.hidden).toBe(false);
    expect(plot('entropy').lines[0].points).toEqual([{ x: 1, y: metricLines(1)[0]['actor/entropy'] }]);
  });

  it('shows an error’s message', async () => {
    const { text } = await open('failed');
    expect(text('.run-error')).toBe(
      'envs/sokoban/environment.ts:41 threw “grid[row] is undefined” in 8 of 8 episodes: mend it and resume',
    );
  });

  it('offers to retry after a refusal', async () => {
    const root = freshPage();
    const host = pageHost('running');
    host.refuse(dashboardReady.method, 'the folder of run x no longer exists: close this page');
    startDashboard(host, root, recordingPlotter().plotter);
    await settle();
    expect(root.querySelector('[role="alert"]')!.textContent).toContain('no longer exists: close this page');
    host.accept(dashboardReady.method);
    click(root.querySelector('.notice vscode-button'));
    await settle();
    expect(root.querySelector('h1')!.textContent).toBe('sokoban starpo-s');
  });

  it('requests a new snapshot when it is shown again, and ignores lines before the first', async () => {
    const root = freshPage();
    const host = pageHost('running');
    startDashboard(host, root, recordingPlotter().plotter);
    host.send(dashboardLines, { run: runAt(1, 200), lines: numbers(1), events: [] });
    await settle();
    document.dispatchEvent(new Event('visibilitychange'));
    await settle();
    expect(host.asked.filter(method => method === dashboardReady.method)).toHaveLength(2);
    expect(root.querySelector('.facts')!.textContent).toContain('140 / 200');
  });

  it('pins, moves and scales charts by keys, announces the new position, and stores it in the workspace', async () => {
    const { root, host, card, plot } = await open('running');
    const ids = (group: string) =>
      [...root.querySelectorAll<HTMLElement>(`[data-group="${group}"] .chart`)].map(each => each.dataset.chart);
    const key = async (name: string, chart: string) => {
      press(name, card(chart).querySelector('.chart-plot')!);
      await settle();
    };
    await key('>', 'KL');
    expect(ids('policy').slice(0, 2)).toEqual(['clip fraction', 'KL']);
    expect(root.querySelector('[aria-live]')!.textContent).toBe('KL is 2 of 9 in Policy');
    await key('p', 'KL');
    expect(ids('pinned')).toEqual([
      'success',
      'reward',
      'in-group reward std',
      'entropy',
      'return',
      'time per step',
      'KL',
    ]);
    await key('<', 'KL');
    expect(ids('pinned').slice(-2)).toEqual(['KL', 'time per step']);
    expect(plot('KL').log).toBe(false);
    await key('l', 'KL');
    expect(plot('KL').log).toBe(true);
    expect(plot('KL').y.min).toBe(1e-4);
    const lastView = host.sent.filter(({ method }) => method === dashboardView.method).at(-1)!.params;
    expect(lastView).toMatchObject({ view: { view: { log: ['KL'], pinned: expect.arrayContaining(['KL']) } } });
    expect(host.getState()).toMatchObject({ view: { log: ['KL'] } });
  });

  it('moves a chart to where it is dropped, within its group', async () => {
    const { root, card } = await open('running');
    const data = new Map<string, string>();
    const dataTransfer = {
      setData: (type: string, value: string) => void data.set(type, value),
      getData: (type: string) => data.get(type) ?? '',
      get types() {
        return [...data.keys()];
      },
    };
    const drag = (type: string, target: Element) =>
      target.dispatchEvent(Object.assign(new Event(type, { bubbles: true, cancelable: true }), { dataTransfer }));
    drag('dragstart', card('learning rate').querySelector('header')!);
    drag('dragover', card('KL'));
    drag('drop', card('KL'));
    await settle();
    const ids = () =>
      [...root.querySelectorAll<HTMLElement>('[data-group="policy"] .chart')].map(each => each.dataset.chart);
    expect(ids().slice(0, 2)).toEqual(['learning rate', 'KL']);
    drag('dragstart', card('learning rate').querySelector('header')!);
    drag('drop', card('tokens/s'));
    await settle();
    expect(ids()[0]).toBe('learning rate');
  });

  it('zooms all charts by keys and wheel, pans, and resets', async () => {
    const { root, host, card, plot } = await open('running');
    const area = card('KL').querySelector('.chart-plot')!;
    press('+', area);
    await settle();
    expect(plot('entropy').x).toMatchObject({ min: 35, max: 105 });
    expect(plot('entropy').lines[0].points.length).toBeLessThan(75);
    area.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', shiftKey: true, bubbles: true }));
    await settle();
    expect(plot('KL').x).toMatchObject({ min: 52.5, max: 122.5 });
    const wheel = new WheelEvent('wheel', { deltaY: -400, cancelable: true });
    Object.defineProperties(wheel, { offsetX: { value: 100 }, ctrlKey: { value: true }, deltaMode: { value: 0 } });
    area.dispatchEvent(wheel);
    await settle();
    expect(wheel.defaultPrevented).toBe(true);
    expect(plot('KL').x.max - plot('KL').x.min).toBeCloseTo(70 / Math.E, 6);
    const plain = new WheelEvent('wheel', { deltaY: -400, cancelable: true });
    area.dispatchEvent(plain);
    expect(plain.defaultPrevented).toBe(false); // it scrolls the page
    expect(host.getState()).toMatchObject({ view: { zoom: { to: expect.any(Number) } } });
    press('0');
    await settle();
    expect(plot('KL').x).toMatchObject({ min: 0, max: 140 });
    expect(root.querySelector<HTMLElement>('.controls [title^="Show all"]')!.hidden).toBe(true);
  });

  it('draws validation with its interval, and a band around a mean', async () => {
    const { plot } = await open('running');
    const [train, val] = plot('success').lines;
    expect(train.band).toBeUndefined();
    expect(val.band!.low).toHaveLength(14);
    const [low, value, high] = [val.band!.low[6].y, val.points[6].y, val.band!.high[6].y];
    expect(low).toBeLessThan(value);
    expect(high).toBeGreaterThan(value);
    expect(high - low).toBeGreaterThan(0.1); // 64 episodes
    expect(plot('critic/advantages/mean').lines[0].band!.high).toHaveLength(140);
    expect(plot('reward').lines[0].band).toBeUndefined();
  });

  it('shows the number of alarms, also at the chart of the metric, and opens the latest', async () => {
    const { root, card } = await open('running');
    const sentence = 'In-group reward std fell below 10 % of its first ten steps';
    expect(root.querySelector('.alarms')!.textContent).toBe(`▲ ${sentence}`);
    click(card('in-group reward std').querySelector('.alarm-sign'));
    await settle();
    expect(root.querySelector('.event-table .opened')!.textContent).toContain(sentence);
    expect(card('entropy').querySelector('.alarm-sign')).toBeNull();
  });

  it('shows at its head that a running run may need more memory than was available', async () => {
    const { host, root } = await open('running');
    const head = () => root.querySelector<HTMLElement>('.memory-warning')!;
    expect(head().hidden).toBe(true);
    const data = { planned: 15.4 * 2 ** 30, available: 12.3 * 2 ** 30, phase: 'policy update' };
    const events = [{ time: '2026-01-01T00:00:00Z', step: 0, kind: 'memory_plan' as const, message: 'plan', data }];
    host.send(dashboardLines, { run: runAt(140, 200), lines: [], events });
    await settle();
    expect(head().hidden).toBe(false);
    expect(head().textContent).toBe(
      '▲ Memory: the run may need 15.4 GiB in its policy update, but 12.3 GiB was available at its start',
    );
    host.send(dashboardLines, {
      run: { ...runAt(140, 200, { state: 'finished' }), live: false },
      lines: [],
      events: [],
    });
    await settle();
    expect(head().hidden).toBe(true);
  });

  it('asks the host to export metrics and pictures', async () => {
    const { root, host, card } = await open('running');
    const asked: Export[] = [];
    const request = host.request.bind(host);
    host.request = (type: { method: string }, params: never) => {
      if (type.method === dashboardExport.method) asked.push(params);
      return request(type as never, params);
    };
    const choose = async (label: string) => {
      click(card('entropy').querySelector('[title="More about Entropy"]'));
      click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.includes(label)));
      await settle();
      expect(document.querySelector('.menu')).toBeNull();
    };
    await choose('Export as CSV');
    expect(asked[0]).toEqual({ kind: 'csv', name: 'entropy', keys: ['actor/entropy'], from: 0, to: 140 });
    await choose('Export as SVG');
    const picture = asked[1] as Extract<Export, { kind: 'picture' }>;
    const svg = new DOMParser().parseFromString(new TextDecoder().decode(picture.bytes), 'image/svg+xml');
    expect(svg.querySelector('parsererror')).toBeNull();
    expect(svg.querySelectorAll('path')).toHaveLength(1);
    expect(svg.documentElement.textContent).toContain('training step');
    click(root.querySelector('[title="Export the displayed metrics as CSV"]'));
    await settle();
    expect((asked[2] as Extract<Export, { kind: 'csv' }>).keys).toEqual(
      expect.arrayContaining(['critic/score/min', 'timing_s/gen']),
    );
  });

  it('says why an export failed, until that is closed', async () => {
    const { root, host } = await open('running');
    host.refuse(dashboardExport.method, '/work/metrics.csv is read-only: choose another folder');
    click(root.querySelector('[title="Export the displayed metrics as CSV"]'));
    await settle();
    const said = root.querySelector('.notice-error')!;
    expect(said.textContent).toContain('/work/metrics.csv is read-only');
    click(said.querySelector('vscode-button'));
    expect(root.querySelector('.notice-error')).toBeNull();
  });

  it('gathers lines that come within a moment into one drawing', async () => {
    const { host, plot, text } = await open('running');
    const lines = numbers(144).slice(140);
    const send = (step: number) =>
      host.send(dashboardLines, { run: runAt(step, 200), lines: [lines[step - 141]], events: [] });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
    try {
      send(141);
      send(142);
      send(143);
      await settle();
      expect([plot('entropy').lines[0].points.length, text('.facts').slice(0, 13)]).toEqual([141, 'step141 / 200']);
      vi.advanceTimersByTime(1000);
    } finally {
      vi.useRealTimers();
    }
    await settle();
    expect(plot('entropy').lines[0].points).toHaveLength(143);
    expect(text('.facts')).toContain('step143 / 200');
  });

  it('draws a chart’s buttons once it is on screen', async () => {
    const observe = vi.spyOn(IntersectionObserver.prototype, 'observe').mockImplementation(() => undefined);
    const { card } = await open('running');
    expect(card('entropy').querySelector('[title="Table of Entropy"]')).toBeNull();
    visibility.show(card('entropy'), true);
    await settle();
    expect(card('entropy').querySelector('[title="Table of Entropy"]')).not.toBeNull();
    visibility.show(card('entropy'), false);
    expect(card('entropy').querySelector('[title="Table of Entropy"]')).not.toBeNull();
    observe.mockRestore();
  });

  it('sorts the table of all metrics by a column, and keeps the order', async () => {
    const { root, host } = await open('running');
    press('t');
    await settle();
    const head = (label: string) =>
      [...root.querySelectorAll('.run-table .sort')].find(each => each.textContent === label);
    const first = () => root.querySelector('.run-table tbody th[scope="row"]')!.textContent;
    click(head('max'));
    await settle();
    expect(first()).toBe('perf/total_num_tokens');
    expect(head('max')!.closest('th')!.getAttribute('aria-sort')).toBe('descending');
    click(head('metric'));
    await settle();
    click(head('metric'));
    await settle();
    expect(first()).toBe('val-env/CoordSokoban/success');
    expect(host.getState()).toMatchObject({ view: { sort: { column: 'metric', down: false } } });
  });

  it('starts with the workspace’s settings if it has none of its own, and reloads when more data is read', async () => {
    const root = freshPage();
    const host = pageHost('running');
    const request = host.request.bind(host);
    let read = 0.4;
    host.request = (async (type: { method: string }, params: never) => {
      const answer = await request(type as never, params);
      if (type.method !== dashboardReady.method) return answer;
      return { ...(answer as object), read, view: { schema: 3, view: { axis: 'time', open: ['policy'] } } };
    }) as typeof host.request;
    startDashboard(host, root, recordingPlotter().plotter);
    await settle();
    expect(root.querySelector('[data-group="policy"] .fold')!.getAttribute('aria-expanded')).toBe('true');
    expect(root.querySelector('.reading')!.textContent).toContain('Reading the metrics: 40 %');
    host.send(dashboardRead, { read: 0.7 });
    expect(root.querySelector('.reading')!.textContent).toContain('70 %');
    read = 1;
    host.send(dashboardRead, { read: 1 });
    await settle();
    expect(root.querySelector<HTMLElement>('.reading')!.hidden).toBe(true);
    expect(host.asked.filter(method => method === dashboardReady.method)).toHaveLength(2);
  });

  it('requests a long run’s columns as an overview of the visible charts, then completely', async () => {
    const { host, plot, card } = await open('large');
    await vi.waitFor(() => expect(plot('entropy').lines[0].points.length).toBeLessThan(600));
    await settle();
    const asked = host.asked.filter(method => method === dashboardColumns.method).length;
    visibility.show(card('entropy'), false);
    visibility.show(card('entropy'), true);
    await settle();
    expect(host.asked.filter(method => method === dashboardColumns.method)).toHaveLength(asked);
    expect(plot('entropy').x.max).toBe(100_000);
  });

  it('opens with at most ten charts, and requests nothing for collapsed groups', async () => {
    const { root, host, text } = await open('running', null);
    const requested = (): string[] =>
      host.params
        .filter(({ method }) => method === dashboardColumns.method)
        .flatMap(({ params }) => (params as { keys: string[] }).keys);
    expect(root.querySelectorAll('.chart').length).toBeLessThanOrEqual(10);
    expect(requested()).toContain('actor/entropy');
    expect(requested()).not.toContain('actor/ppo_kl');
    const heading = '[data-group="policy"] .group-title';
    expect(text(heading).replace(/\s+/g, ' ')).toMatch(/^ ?Policy \(\d+\)/);
    click(root.querySelector(`${heading} .fold`));
    await settle();
    expect(requested()).toContain('actor/ppo_kl');
    expect(host.getState()).toMatchObject({ view: { open: ['policy'] } });
  });

  it('hides constant and duplicate metrics until they are asked for', async () => {
    const { root, card } = await open('running', { ...expanded, view: { open: groups } });
    expect(card('rollout/filter_kept_count')).toBeNull(); // 4 at every step
    expect(card('timing_s/step')).toBeNull(); // equal to perf/time_per_step
    const ask = root.querySelector('[data-group="filter"] .redundant');
    expect(ask?.textContent.trim()).toBe('Show 1 constant or duplicate metric');
    click(ask);
    await settle();
    expect(card('rollout/filter_kept_count')).not.toBeNull();
    expect(card('timing_s/step')).not.toBeNull();
    click(root.querySelector('[data-group="filter"] .redundant'));
    await settle();
    expect(card('timing_s/step')).toBeNull();
    const field = root.querySelector<HTMLElement & { value: string }>('.search')!;
    field.value = 'kept_count';
    field.dispatchEvent(new Event('input'));
    await settle();
    expect(card('rollout/filter_kept_count')).not.toBeNull();
  });

  it('follows a change of theme', async () => {
    const { plot } = await open('running');
    expect(paletteOf('dark')).toContain(plot('entropy').lines[0].colour);
    document.body.className = 'vscode-light';
    await settle();
    expect(paletteOf('light')).toContain(plot('entropy').lines[0].colour);
    document.body.className = 'vscode-high-contrast';
    await settle();
    expect(plot('success').lines.map(line => line.dash.length > 0)).toEqual([false, true]);
  });

  it('shows hostile texts as plain text', async () => {
    const { root, host } = await open('hostile');
    click(root.querySelector('[data-group="events"] .fold'));
    const lines = numbers(25)
      .slice(24)
      .map(line => ({ ...line, [`train/${hostileTexts[0]}/success`]: 0.5 }));
    host.send(dashboardLines, {
      run: runAt(25, 200),
      lines,
      events: runEvents(140).map((event, i) => ({ ...event, message: hostileTexts[i % hostileTexts.length] })),
    });
    press('t');
    await settle();
    expect(root.querySelector('img, script, iframe, style, [onload], [onerror], svg:not(.icon)')).toBeNull();
    for (const text of hostileTexts) expect(root.textContent).toContain(text);
  });
});
