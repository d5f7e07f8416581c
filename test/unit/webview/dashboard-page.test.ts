// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from 'vitest';
import { dashboardCommand, dashboardLines, dashboardReady } from '../../../extension/protocol/pages';
import { startDashboard } from '../../../webview/dashboard/page';
import { paletteOf } from '../../../webview/shared/palette';
import { hostileTexts, metricLines, runAt, runEvents } from '../../e2e/preview/data';
import type { Scenario } from '../../e2e/preview/memory-host';
import { freshPage, pageHost, press, recordingPlotter, settle, stubVisibility } from './page-host';

let visibility: ReturnType<typeof stubVisibility>;
beforeEach(() => void (visibility = stubVisibility()));

async function open(scenario: Scenario, kept?: unknown) {
  const root = freshPage();
  const host = pageHost(scenario, kept);
  const { plotter, drawn } = recordingPlotter();
  startDashboard(host, root, plotter);
  await settle();
  const card = (title: string) => root.querySelector<HTMLElement>(`[data-chart="${title}"]`)!;
  const plot = (title: string) => drawn.get(card(title)?.querySelector('canvas') as HTMLCanvasElement)!;
  const text = (selector: string) => root.querySelector(selector)?.textContent ?? '';
  return { root, host, drawn, card, plot, text };
}
const click = (element: Element | null | undefined) =>
  element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));

describe('the dashboard', () => {
  it('shows the run, its standing and numbers', async () => {
    const { text } = await open('running');
    expect(text('h1')).toBe('sokoban starpo-s');
    expect(text('.status')).toBe('running · rollout');
    expect(text('.facts')).toBe('step140 / 200success41.2 %left21 m 00 stokens/s2.31 k');
  });

  it('begins with the four that matter and draws them', async () => {
    const { root, plot, card } = await open('running');
    expect([...root.querySelectorAll('[data-group="pinned"] h3')].map(h3 => h3.textContent)).toEqual([
      'success',
      'reward',
      'in-group reward std',
      'entropy',
    ]);
    expect(plot('success').lines).toHaveLength(2);
    expect(plot('success').y).toEqual({ min: 0, max: 1, step: 0.5 });
    expect(plot('entropy').lines[0].points).toHaveLength(140);
    expect(card('reward').querySelector('.chart-values')!.textContent).toMatch(/^1\.26\+0\.519$/);
  });

  it('says key and meaning of a chart', async () => {
    const { card } = await open('running');
    expect(card('entropy').querySelector('.chart-title')!.getAttribute('title')).toMatch(
      /^actor\/entropy\nMean entropy of the next-token distribution/,
    );
    expect(card('entropy').querySelector('canvas')!.getAttribute('aria-label')).toBe(
      'Chart of entropy. entropy: 0.630 at step 140',
    );
  });

  it('breaks the line where a value was not finite', async () => {
    const { plot } = await open('running');
    expect(plot('gradient norm').lines[0].points.filter(point => Number.isNaN(point.y))).toHaveLength(1);
  });

  it('grows with new lines, without a new snapshot', async () => {
    const { host, plot, text } = await open('running');
    const lines = metricLines(143).slice(140);
    host.send(dashboardLines, { run: runAt(143, 200), lines, events: [] });
    await settle();
    expect(plot('entropy').lines[0].points).toHaveLength(143);
    expect(text('.facts')).toContain('step143 / 200');
    expect(host.asked).toEqual([dashboardReady.method]);
  });

  it('draws only what is on screen', async () => {
    const { host, drawn, card } = await open('running');
    const canvas = card('entropy').querySelector('canvas')!;
    visibility.show(card('entropy'), false);
    expect(drawn.has(canvas)).toBe(false);
    host.send(dashboardLines, { run: runAt(141, 200), lines: metricLines(141).slice(140), events: [] });
    await settle();
    expect(drawn.has(canvas)).toBe(false);
    visibility.show(card('entropy'), true);
    expect(drawn.get(canvas)!.lines[0].points).toHaveLength(141);
  });

  it('shows one crosshair and one step’s values in all charts', async () => {
    const { root, card } = await open('running');
    const plotArea = card('reward').querySelector('.chart-plot')!;
    const move = new PointerEvent('pointermove', { bubbles: true });
    Object.defineProperty(move, 'offsetX', { value: 69.4 });
    plotArea.dispatchEvent(move);
    const labels = new Set(
      [...root.querySelectorAll<HTMLElement>('.crosshair')].filter(each => !each.hidden).map(each => each.textContent),
    );
    expect(labels).toEqual(new Set(['69']));
    expect(card('entropy').querySelector('strong')!.textContent).toBe('0.996');
    plotArea.dispatchEvent(new PointerEvent('pointerleave'));
    expect(card('entropy').querySelector('strong')!.textContent).toBe('0.630');
  });

  it('moves the crosshair by arrow keys', async () => {
    const { card } = await open('running');
    const plotArea = card('reward').querySelector('.chart-plot')!;
    press('ArrowLeft', plotArea);
    expect(card('entropy').querySelector('.crosshair')!.textContent).toBe('140');
    press('PageUp', plotArea);
    expect(card('entropy').querySelector('.crosshair')!.textContent).toBe('130');
  });

  it('enlarges a chart, and keeps it so', async () => {
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
    const { card } = await open('running', { folder: '/x', schema: 99, view: { enlarged: ['entropy'], folded: 3 } });
    expect(card('entropy').classList.contains('large')).toBe(false);
  });

  it('smooths, with the values as they are behind', async () => {
    const { root, plot } = await open('running');
    const slider = root.querySelector<HTMLInputElement>('.smoothing input')!;
    slider.value = '0.9';
    slider.dispatchEvent(new Event('input'));
    await settle();
    const [raw, smoothed] = plot('entropy').lines;
    expect([raw.alpha, smoothed.alpha]).toEqual([0.28, 1]);
    const roughness = (line: typeof raw) =>
      line.points.reduce((sum, point, i) => sum + (i > 0 ? Math.abs(point.y - line.points[i - 1].y) : 0), 0);
    expect(roughness(smoothed)).toBeLessThan(roughness(raw) / 2);
  });

  it('goes by time', async () => {
    const { root, plot } = await open('running');
    const axis = root.querySelector<HTMLElement & { value: string }>('vscode-dropdown')!;
    axis.value = 'time';
    axis.dispatchEvent(new Event('change'));
    await settle();
    expect(plot('entropy').axis).toBe('time');
    expect(plot('entropy').lines[0].points.at(-1)!.x).toBeCloseTo(metricLines(140)[139].wall_s, 6);
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
    expect(root.querySelector('.notice')!.textContent).toContain('Nothing in this run matches “no such”');
  });

  it('folds a group', async () => {
    const { root } = await open('running');
    const policy = root.querySelector<HTMLElement>('[data-group="policy"]')!;
    click(policy.querySelector('.fold'));
    await settle();
    expect(policy.querySelector<HTMLElement>('.charts')!.hidden).toBe(true);
    expect(policy.querySelector('.fold')!.getAttribute('aria-expanded')).toBe('false');
  });

  it('has a table behind each chart and one for the run', async () => {
    const { root, card } = await open('running');
    click(card('entropy').querySelector('[title="Table of entropy"]'));
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

  it('marks events and says what happened on a click', async () => {
    const { root, plot, card } = await open('running');
    expect(new Set(plot('entropy').marks.map(mark => mark.kind))).toEqual(
      new Set(['checkpoint', 'version', 'setting', 'alarm']),
    );
    const at = new MouseEvent('click', { bubbles: true });
    Object.defineProperties(at, { offsetX: { value: 113 }, offsetY: { value: 95 } });
    card('entropy').querySelector('.chart-plot')!.dispatchEvent(at);
    await settle();
    expect(root.querySelector('.event-table .opened')!.textContent).toContain('"baseline": 2.11');
    expect(card('entropy').classList.contains('large')).toBe(false);
  });

  it('sends what the buttons say', async () => {
    const { root, host } = await open('running');
    for (const button of root.querySelectorAll('.buttons vscode-button')) click(button);
    const sent = host.sent.map(({ method, params }) => [method, (params as { command: string }).command]);
    expect(sent).toEqual(['pause', 'stop', 'log', 'episodes'].map(command => [dashboardCommand.method, command]));
  });

  it.each([
    [{ state: 'paused' as const }, true, 'paused', ['Resume', 'Stop', 'Log', 'Episodes']],
    [{}, false, 'interrupted', ['Resume', 'Log', 'Episodes']],
    [{ state: 'finished' as const }, false, 'finished', ['Log', 'Episodes']],
    [{ state: 'stopping' as const }, true, 'stopping', ['Log', 'Episodes']],
  ])('of a run with %j, live %s, stands %s and offers %j', async (status, live, standing, names) => {
    const { root, host, text } = await open('running');
    host.send(dashboardLines, { run: { ...runAt(140, 200, status), live }, lines: [], events: [] });
    await settle();
    expect(text('.status')).toBe(standing);
    expect(
      [...root.querySelectorAll('.buttons vscode-button')].map(
        each => each.getAttribute('aria-label') ?? each.textContent,
      ),
    ).toEqual(names);
  });

  it('says what comes next before the first step, and goes on by itself', async () => {
    const { root, host, text, plot } = await open('empty');
    expect(text('.notice')).toContain('No step has finished yet');
    expect(root.querySelector<HTMLElement>('.controls')!.hidden).toBe(true);
    host.send(dashboardLines, { run: runAt(1, 200), lines: metricLines(1), events: [] });
    await settle();
    expect(text('.notice')).toBe('');
    expect(root.querySelector<HTMLElement>('.controls')!.hidden).toBe(false);
    expect(plot('entropy').lines[0].points).toEqual([{ x: 1, y: metricLines(1)[0]['actor/entropy'] }]);
  });

  it('shows an error’s sentence', async () => {
    const { text } = await open('failed');
    expect(text('.run-error')).toBe(
      'envs/sokoban/environment.ts:41 threw “grid[row] is undefined” in 8 of 8 episodes: mend it and resume',
    );
  });

  it('asks again after a refusal', async () => {
    const root = freshPage();
    const host = pageHost('running');
    host.refuse(dashboardReady.method, 'run x: its folder is gone: close this page');
    startDashboard(host, root, recordingPlotter().plotter);
    await settle();
    expect(root.querySelector('[role="alert"]')!.textContent).toContain('its folder is gone: close this page');
    host.accept(dashboardReady.method);
    click(root.querySelector('.notice vscode-button'));
    await settle();
    expect(root.querySelector('h1')!.textContent).toBe('sokoban starpo-s');
  });

  it('asks for a fresh snapshot when it is shown again, and ignores lines before the first', async () => {
    const root = freshPage();
    const host = pageHost('running');
    startDashboard(host, root, recordingPlotter().plotter);
    host.send(dashboardLines, { run: runAt(1, 200), lines: metricLines(1), events: [] });
    await settle();
    document.dispatchEvent(new Event('visibilitychange'));
    await settle();
    expect(host.asked).toEqual([dashboardReady.method, dashboardReady.method]);
    expect(root.querySelector('.facts')!.textContent).toContain('140 / 200');
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

  it('leaves hostile texts texts', async () => {
    const { root, host } = await open('hostile');
    click(root.querySelector('[data-group="events"] .fold'));
    const lines = metricLines(25)
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
