// @vitest-environment happy-dom
// What users change on the dashboard's charts: ends of the y axis, a chart that fills the page, smoothed values, and
// charts of their own expressions; charts of plug-ins; and the episodes that the dashboard picks.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  dashboardEpisode,
  dashboardExport,
  dashboardLines,
  type Export,
} from '../../../../extension/protocol/dashboard-page';
import type { ChartSpec } from '../../../../extension/run-data/charts/catalogue';
import { panelGroups, panelProblems } from '../../../../webview/charts/panels';
import { limitsOf } from '../../../../webview/dashboard/charts/chart-forms';
import { press, settle } from '../page-host';
import { runAt } from '../../../e2e/preview/data';
import { click, expanded, open, stubDrawing } from './open-dashboard';

beforeEach(() => {
  stubDrawing();
  document.querySelectorAll('dialog, .menu').forEach(element => element.remove());
});

/** Fills the open dialog and accepts it. */
async function fill(values: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(values))
    document.querySelector<HTMLInputElement>(`dialog [name="${name}"]`)!.value = value;
  press('Enter', document.querySelector('dialog input')!);
  await settle();
}
const problems = (): string[] => [...document.querySelectorAll('dialog .problem')].map(each => each.textContent);
async function choose(card: HTMLElement, label: string): Promise<void> {
  click(card.querySelector('[aria-haspopup]'));
  click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.includes(label)));
  await settle();
}

describe('the y axis', () => {
  it('has the ends that the user sets, until the user removes them', async () => {
    const { host, card, plot } = await open('running');
    const before = plot('entropy').y;
    press('y', card('entropy').querySelector('.chart-plot')!);
    await fill({ low: '0.9', high: '0.2' });
    expect(problems()).toEqual(['The lower end 0.9 must be below the upper end 0.2.']);
    await fill({ low: '20 %', high: '0.9' });
    expect(document.querySelector('dialog')).toBeNull();
    expect(plot('entropy').y).toEqual({ min: 0.2, max: 0.9, step: 0.2 });
    expect(card('entropy').querySelector('.chart-values')!.textContent).toContain('limited');
    expect(host.getState()).toMatchObject({ view: { limits: { entropy: { low: 0.2, high: 0.9 } } } });
    await choose(card('entropy'), 'Set the y axis');
    await fill({ low: '', high: '' });
    expect(plot('entropy').y).toEqual(before);
    expect(host.getState()).toMatchObject({ view: { limits: {} } });
  });

  it('reads numbers, shares and empty fields', () => {
    expect(limitsOf({ low: '', high: ' ' })).toEqual({ low: null, high: null });
    expect(limitsOf({ low: '-1e3', high: '50 %' })).toEqual({ low: -1000, high: 0.5 });
    expect(limitsOf({ low: 'x', high: '%' })).toMatchObject({ problems: { low: expect.any(String) as string } });
  });
});

describe('a chart', () => {
  it('fills the page by a key, and Escape ends this', async () => {
    const { card } = await open('running');
    press('f', card('entropy').querySelector('.chart-plot')!);
    await settle();
    expect(card('entropy').className).toBe('chart full');
    press('Escape');
    await settle();
    expect(card('entropy').className).toBe('chart');
  });

  it('shows smoothed values while its lines are smoothed, and the logged value in a tooltip', async () => {
    const { card } = await open('running');
    const value = () => card('entropy').querySelector('.chart-value')!;
    const logged = value().textContent;
    const again = await open('running', { ...expanded, view: { ...expanded.view, smoothing: 0.9 } });
    const smoothed = again.card('entropy').querySelector('.chart-value')!;
    expect(smoothed.textContent).not.toBe(logged);
    expect(smoothed.getAttribute('title')).toBe(`smoothed; the logged value is ${logged}`);
  });
});

describe('a chart of a plug-in', () => {
  it('is drawn from its plan as soon as the event of the plan arrives, and follows an edit', async () => {
    const view = { ...expanded.view, open: [...expanded.view.open, 'plugins'] };
    const { host, root, card, plot } = await open('running', { ...expanded, view });
    const listed = async (title: string, ...keys: string[]) => {
      const charts = [{ name: 'signal', title, unit: 'share', explanation: 'How much an update learns.', keys }];
      const time = '2026-02-03T00:01:00.000Z';
      const event = { time, step: 140, kind: 'plugin_charts' as const, message: 'charts', data: { charts } };
      host.send(dashboardLines, { run: runAt(140, 200), lines: [], events: [event] });
      await settle();
    };
    expect(root.querySelector('[data-group="plugins"]')).toBeNull();
    await listed('Learning signal', 'actor/entropy', 'rollout/in_group_reward_std');
    const chart = card('plugin_charts/signal');
    expect(chart.querySelector('h3')!.textContent).toBe('Learning signal');
    expect(chart.querySelector('.chart-title')!.getAttribute('title')).toMatch(/^How much an update learns\.\n\n/);
    expect(chart.querySelector('.chart-values')!.textContent).toContain('%');
    expect(plot('plugin_charts/signal').lines).toHaveLength(2);
    expect(plot('entropy').lines).toHaveLength(1);
    await listed('Signal', 'actor/entropy');
    const title = () => card('plugin_charts/signal').querySelector('h3')!.textContent;
    await expect.poll(title).toBe('Signal'); // the page gathers messages
    await settle();
    expect(plot('plugin_charts/signal').lines).toHaveLength(1);
  });
});

describe('a chart of the user', () => {
  it('shows expressions as lines, and is edited, kept, exported and removed', async () => {
    const { root, host, card, plot } = await open('running');
    click(root.querySelector('[title="New chart…"]'));
    await fill({ y: 'actor/entropi' });
    expect(problems()).toEqual(['This run has no metric actor/entropi: did you mean actor/entropy?']);
    await fill({ y: 'actor/entropy/actor/grad_norm' });
    expect(problems()[0]).toContain('write blanks around - and / between metrics.');
    await fill({ y: 'actor/entropy * 2; actor/entropy', title: 'Twice' });
    expect(card('panel 1').querySelector('h3')!.textContent).toBe('Twice');
    const [twice, once] = plot('panel 1').lines;
    expect([twice.label, once.label]).toEqual(['actor/entropy * 2', 'Entropy']);
    expect(twice.points).toHaveLength(140);
    expect(twice.points[139].y).toBeCloseTo(2 * once.points[139].y, 12);

    const asked: Export[] = [];
    const request = host.request.bind(host);
    host.request = (type: { method: string }, params: never) => {
      if (type.method === dashboardExport.method) asked.push(params);
      return request(type as never, params);
    };
    await choose(card('panel 1'), 'Export as CSV');
    expect(asked[0]).toMatchObject({ kind: 'csv', keys: ['actor/entropy'] });

    const again = await open('running', host.getState());
    expect(again.card('panel 1').querySelector('h3')!.textContent).toBe('Twice');
    await choose(again.card('panel 1'), 'Edit');
    await fill({ y: 'log10(actor/entropy)', title: '' });
    expect(again.card('panel 1').querySelector('h3')!.textContent).toBe('log10(actor/entropy)');
    await choose(again.card('panel 1'), 'Remove');
    expect(again.card('panel 1')).toBeNull();
  });

  it('shows values against an expression, and its points move the crosshair of all charts', async () => {
    const { root, host, card, plot } = await open('running');
    await choose(card('entropy'), 'New chart from these metrics');
    expect(document.querySelector<HTMLInputElement>('dialog [name="y"]')!.value).toBe('actor/entropy');
    await fill({ x: 'step / 10' });
    const chart = card('panel 1');
    expect(chart.querySelector('h3')!.textContent).toBe('Entropy against step / 10');
    expect(chart.querySelectorAll('circle')).toHaveLength(140);
    for (let times = 1; times <= 2; times++) press('PageUp', card('entropy').querySelector('.chart-plot')!);
    await settle();
    expect(chart.querySelectorAll('circle')).toHaveLength(141);
    expect(chart.querySelector('.chart-values')!.textContent).toContain('x 13');
    expect(plot('entropy').lines).toHaveLength(1);

    const asked: Export[] = [];
    const request = host.request.bind(host);
    host.request = (type: { method: string }, params: never) => {
      if (type.method === dashboardExport.method) asked.push(params);
      return request(type as never, params);
    };
    await choose(chart, 'Export as SVG');
    const { bytes } = asked[0] as Extract<Export, { kind: 'picture' }>;
    const text = new TextDecoder().decode(bytes);
    expect(new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror')).toBeNull();
    expect(text).not.toContain('<!--');
    expect(text).toContain('step / 10');
    expect(root.querySelector('[data-group="panels"] .count')!.textContent).toBe('(1)');
  });

  it('has the unit of its metrics if they share one', () => {
    const specOf = (y: string): ChartSpec => panelGroups([{ id: 'panel 1', title: '', y, x: '' }])[0].charts[0];
    expect(specOf('train/lake/success; "val-env/lake/success"')).toMatchObject({
      unit: 'share',
      lines: [{ key: 'train/lake/success' }, { key: 'val-env/lake/success' }],
    });
    expect(specOf('train/lake/success * 1').unit).toBe('number');
    expect(panelProblems({ y: ' ; ', x: '' }, [])).toEqual({ y: 'Enter a metric or an expression.' });
  });
});

it('names the episodes to read first, and opens them', async () => {
  const { root, host } = await open('running');
  const row = root.querySelector('.picked')!;
  expect([...row.querySelectorAll('button')].map(each => each.textContent.split(' ')[0])).toEqual(
    expect.arrayContaining(['Best', 'Worst']),
  );
  click(row.querySelector('button'));
  expect(host.sent.filter(({ method }) => method === dashboardEpisode.method)).toHaveLength(1);
});
