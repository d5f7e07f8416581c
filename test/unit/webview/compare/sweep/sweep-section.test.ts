// @vitest-environment happy-dom
// The section of a sweep on the Compare page, with twenty generated runs: importances, parallel coordinates, table.
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { compareOpen } from '../../../../../extension/protocol/compare-page';
import { startCompare } from '../../../../../webview/compare/page';
import { comparedHost, sweepHost } from '../../../../e2e/preview/compared-host';
import { freshPage, pageHost, press, recordingPlotter, settle, stubVisibility, type PageHost } from '../../page-host';

const metrics = readFileSync('docs/METRICS.md', 'utf8');
let root: HTMLElement;
let host: PageHost;

async function open(memory: Parameters<typeof pageHost>[0]): Promise<void> {
  stubVisibility();
  root = freshPage();
  host = pageHost(memory);
  startCompare(host, root, recordingPlotter().plotter);
  for (let turn = 0; turn < 3; turn++) await settle();
}

const texts = (selector: string) => [...root.querySelectorAll(selector)].map(each => each.textContent.trim());
const lines = () => root.querySelectorAll('.parallel-line');
const inRange = () => root.querySelectorAll('.parallel-line:not([data-out])').length;
const axis = (key: string) => root.querySelector<SVGElement>(`.parallel-axis[data-key$="${key}"]`)!;
const plot = () => root.querySelector<HTMLElement>('.parallel-scroll')!;
const opened = () => host.sent.filter(({ method }) => method === compareOpen.method).map(({ params }) => params);

describe('twenty runs', () => {
  beforeEach(() => open(sweepHost(20, metrics)));

  it('rank the keys by importance, with signed correlations', () => {
    expect(texts('.importance-table tbody th')).toEqual(['lr', 'adv_estimator', 'entropy_coeff', 'clip_ratio']);
    const correlations = texts('.importance-table tbody td:last-child');
    expect(correlations[0]).toMatch(/^−0\.9/);
    expect(correlations[1]).toBe('–');
    expect(root.querySelector('.sweep-importance')!.textContent).toMatch(
      /The keys predict \d+(\.\d)? % of the variance/,
    );
  });

  it('are lines over an axis per key and one for the metric', () => {
    expect(lines()).toHaveLength(20);
    expect(texts('.parallel-title').map(text => text.replace(/^[\w./]+\s+/, ''))).toHaveLength(5);
    expect(lines()[0].getAttribute('stroke')).toMatch(/^color-mix\(in oklab, #\w+ 0%/);
    expect(lines()[19].getAttribute('stroke')).toContain(' 100%');
  });

  it('are marked on an axis by keys; Escape removes the range', async () => {
    press('ArrowUp', axis('lr'));
    await settle();
    expect(inRange()).toBe(5);
    axis('lr').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', shiftKey: true, bubbles: true }));
    await settle();
    expect(inRange()).toBe(10);
    expect(root.querySelector('.parallel-readout')!.textContent).toContain('10 of 20 runs');
    expect(root.querySelectorAll('.parallel-table tbody tr')).toHaveLength(10);
    press('Escape', axis('lr'));
    await settle();
    expect(inRange()).toBe(20);
  });

  it('are marked by a drag along an axis', async () => {
    const target = axis('lr');
    target.setPointerCapture = () => undefined;
    const drag = (type: string, clientY: number) =>
      target.dispatchEvent(new PointerEvent(type, { clientY, pointerId: 1, bubbles: true }));
    drag('pointerdown', 250);
    drag('pointermove', 200);
    drag('pointerup', 200);
    drag('pointermove', 40);
    await settle();
    expect(inRange()).toBe(5);
    root.querySelector<HTMLElement>('.parallel-readout .link')!.click();
    await settle();
    expect(inRange()).toBe(20);
  });

  it('are shown on hover and opened by a click', async () => {
    const target = root.querySelector<SVGElement>('.parallel-target')!;
    target.dispatchEvent(new PointerEvent('pointerenter'));
    await settle();
    expect(root.querySelector('.parallel-readout')!.textContent).toMatch(/: Success .*; adv_estimator \w+, /);
    expect(root.querySelector('.parallel-highlight')).not.toBeNull();
    target.dispatchEvent(new MouseEvent('click'));
    expect(opened()).toEqual([{ dashboard: expect.stringContaining('/runs/lr=') as string }]);
  });

  it('are chosen and opened by keys, from the highest result down', async () => {
    press('ArrowLeft', plot());
    await settle();
    const best = root.querySelector('.parallel-table tbody th')!.textContent.trim();
    expect(root.querySelector('.parallel-readout strong')!.textContent).toBe(best);
    press('Enter', plot());
    root.querySelector<HTMLElement>('.parallel-table .link')!.click();
    expect(opened()[0]).toEqual(opened()[1]);
  });
});

describe('fewer runs', () => {
  it('have no importances, and the section says why', async () => {
    await open(sweepHost(5, metrics));
    expect(root.querySelector('.sweep-importance')!.textContent).toMatch(/at least 8 runs .*; there are 5\./);
    expect(lines()).toHaveLength(5);
  });

  it('of two configurations are no sweep', async () => {
    await open(comparedHost(readFileSync('test/experiments/results/1-filter.csv', 'utf8'), metrics));
    expect(root.querySelector('.sweep-section')).toBeNull();
  });
});
