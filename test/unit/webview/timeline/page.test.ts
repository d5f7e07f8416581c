// @vitest-environment happy-dom
// The Timeline page with an in-memory host: opening steps, keys, search, tables, export, and what a run sends.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  timelineGrown,
  timelineReady,
  timelineStepAt,
  timelineExport,
} from '../../../../extension/protocol/timeline-page';
import { summaryOf } from '../../../../extension/run-data/timeline-measures';
import { startTimeline } from '../../../../webview/timeline/page';
import { runAt } from '../../../e2e/preview/data';
import { generatedStep } from '../../../e2e/preview/timeline-data';
import { timelineHost, type TimelineScenario } from '../../../e2e/preview/timeline-host';
import { freshPage, pageHost, press, settle, type PageHost } from '../page-host';

let root: HTMLElement;
beforeEach(() => {
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  root = freshPage();
});

async function start(scenario: TimelineScenario = 'finished', kept?: unknown): Promise<PageHost> {
  const host = pageHost(timelineHost(scenario), kept);
  startTimeline(host, root);
  await settle();
  return host;
}
const text = (selector: string): string => root.querySelector(selector)?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
const button = (label: string): HTMLElement =>
  [...root.querySelectorAll<HTMLElement>('vscode-button, button')].find(
    each => each.textContent?.trim() === label || each.getAttribute('aria-label') === label,
  )!;
const click = async (element: HTMLElement) => {
  element.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
};
const key = async (...names: string[]) => {
  for (const name of names) press(name);
  await settle();
};
const search = async (value: string) => {
  const field = Object.assign(root.querySelector<HTMLElement & { value: string }>('.search')!, { value });
  field.dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  await settle();
};

describe('the overview', () => {
  it('shows bars, their legend and the newest step, and the arrows lead to another', async () => {
    await start();
    expect(root.querySelector('step-bars canvas')?.getAttribute('aria-label')).toContain('24 of 24 steps');
    expect(text('.legend')).toContain('Sampling');
    expect(text('#marked-step')).toMatch(/^Step 24: .* at most 32 in flight$/);
    const canvas = root.querySelector('step-bars canvas')!;
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true, cancelable: true }));
    await settle();
    expect(text('#marked-step')).toMatch(/^Step 23:/);
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    await settle();
    expect(text('.step-name')).toBe('Step 23');
  });

  it('has a table whose steps can be opened', async () => {
    await start();
    await click(button('Table view'));
    expect(root.querySelectorAll('tbody tr')).toHaveLength(24);
    await click(root.querySelector<HTMLElement>('tbody tr:nth-child(2) .link')!);
    expect(text('.step-name')).toBe('Step 23');
  });

  it('of a run without a timeline says so, and of a running one that it waits', async () => {
    await start('empty');
    expect(text('.notice h2')).toBe('This run has no timeline');
    const host = pageHost({
      answer: () => ({ run: runAt(0, 10), steps: [], kept: [], current: '' }),
    });
    root = freshPage();
    startTimeline(host, root);
    await settle();
    expect(text('.notice h2')).toBe('No step has ended yet');
  });

  it('asks again after a failure', async () => {
    const host = pageHost(timelineHost('finished'));
    host.refuse(timelineReady.method, 'the disk is gone');
    startTimeline(host, root);
    await settle();
    expect(text('.notice')).toContain('the disk is gone');
    host.accept(timelineReady.method);
    await click(button('Try again'));
    expect(text('#marked-step')).toMatch(/^Step 24/);
  });
});

describe('a step', () => {
  const open = async (scenario: TimelineScenario = 'finished') => {
    const host = await start(scenario);
    await click(button('Table view'));
    await click(root.querySelector<HTMLElement>('tbody tr .link')!);
    return host;
  };

  it('is drawn, with the total of each kind of span, and Escape leads back', async () => {
    await open();
    await click(button('Table view'));
    expect(root.querySelector('step-canvas canvas')?.getAttribute('aria-label')).toContain('Timeline of step 24');
    expect(text('.details tbody')).toContain('Sampling');
    await key('Escape');
    expect(root.querySelector('step-bars')).not.toBeNull();
  });

  it('leads from a search to a wait, to the episode it waited for, and to the episode itself', async () => {
    const host = await open();
    await search('wait for the batch');
    expect(text('.match-count')).toMatch(/^1 of \d+$/);
    expect(text('.details h2')).toBe('Wait for the batch');
    expect(text('#selected-span')).toContain('waits for train-000024');
    const [episode, cause] = root.querySelectorAll<HTMLElement>('.details-facts .link');
    const id = episode.textContent;
    await click(cause);
    expect(text('.details h2')).toBe('Sampling');
    expect(text('.details dl')).not.toContain(id);
    await click(root.querySelector<HTMLElement>('.details-facts .link')!);
    expect(host.sent.at(-1)).toMatchObject({
      params: { command: 'episode', id: expect.stringMatching(/^train-000024-/) },
    });
  });

  it('of a call lists its rows and the last of them', async () => {
    await open();
    await search('generate');
    expect(text('.details h2')).toBe('Sample');
    expect(text('.details')).toMatch(/32 rows; the last row to end was g\d+-m\d+/);
  });

  it('moves to kept neighbours by keys, and says if there is no such step', async () => {
    await open();
    await key(',');
    expect(text('.step-name')).toBe('Step 23');
    await key('.', '.');
    expect(text('.step-name')).toBe('Step 24');
    const host = await startAt(999);
    expect(text('.notice h2')).toBe('The calls of step 999 are not kept');
    await click(button('Open step 24'));
    expect(text('.step-name')).toBe('Step 24');
    expect(host.asked.filter(method => method === timelineStepAt.method)).toHaveLength(2);
  });

  it('arrow keys select spans along a row and across rows', async () => {
    await open();
    await click(button('Table view'));
    const canvas = root.querySelector('step-canvas canvas')!;
    const arrow = async (name: string) => {
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
      await settle();
      return text('#selected-span');
    };
    const first = await arrow('ArrowRight');
    expect(first).toMatch(/^Rollout: /);
    expect(await arrow('ArrowRight')).toMatch(/^Filter: /);
    expect(await arrow('ArrowLeft')).toBe(first);
    expect(await arrow('ArrowDown')).toMatch(/^Sample: /);
    expect(await arrow('ArrowUp')).toBe(first);
  });
});

async function startAt(step: number): Promise<PageHost> {
  root = freshPage();
  return start('finished', { folder: '/r', schema: 1, view: { step } });
}

describe('a running run', () => {
  it('is followed: the page reads the step in progress, and each newer one', async () => {
    const host = await start('live');
    await key('f');
    expect(text('.step-name')).toBe('Step 25 (in progress)');
    const steps = [summaryOf(generatedStep(25), 5)];
    const kept = Array.from({ length: 25 }, (_, i) => i + 1);
    host.send(timelineGrown, { run: runAt(25, 200), kept, current: 'later', steps });
    await settle();
    expect(host.asked.filter(method => method === timelineStepAt.method)).toHaveLength(2);
    await key('Escape');
    expect(text('#marked-step')).toMatch(/^Step 25:/);
  });
});

describe('the export', () => {
  it('sends what is shown, and gives the reason of a refusal', async () => {
    const host = await start();
    await click(button('Export as Chrome trace'));
    expect(host.asked.at(-1)).toBe(timelineExport.method);
    host.refuse(timelineExport.method, 'no single calls are kept');
    await click(button('Export as Chrome trace'));
    expect(text('.notice-error')).toContain('no single calls are kept');
    await click(button('Close'));
    expect(root.querySelector('.notice')).toBeNull();
  });
});
