// @vitest-environment happy-dom
// The Log page with an in-memory host: order, levels, search, details, growth and failures.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { logCommand, logGrown, logReady } from '../../../../extension/protocol/log-page';
import { eventLine } from '../../../../extension/run-data/log-entries';
import { startLog } from '../../../../webview/log/page';
import { runAt } from '../../../e2e/preview/data';
import { logHost, type LogScenario } from '../../../e2e/preview/log-host';
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

async function start(scenario: LogScenario = 'running', kept?: unknown): Promise<PageHost> {
  const host = pageHost(logHost(scenario), kept);
  startLog(host, root);
  await settle();
  return host;
}
const texts = (selector: string): string[] => [...root.querySelectorAll(selector)].map(each => each.textContent.trim());
const click = async (element: Element | null | undefined) => {
  element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
};
const button = (label: string) =>
  [...root.querySelectorAll('vscode-button, button')].find(each => each.textContent?.trim() === label);
const search = async (value: string) => {
  const field = Object.assign(root.querySelector<HTMLElement & { value: string }>('.search')!, { value });
  field.dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
};

describe('the list', () => {
  it('is by step with the newest first, or starts with errors and then warnings', async () => {
    await start();
    expect(texts('.step-row')[0]).toBe('step 140');
    await click(button('Errors first'));
    expect(root.querySelector('.step-row')).toBeNull();
    const levels = [...root.querySelectorAll('.entry .level')].map(mark => mark.getAttribute('title'));
    expect(levels[0]).toBe('error');
    expect(levels.indexOf('warning')).toBeLessThan(levels.indexOf('info'));
    expect(levels.lastIndexOf('error')).toBeLessThan(levels.indexOf('warning'));
  });

  it('renders only visible rows of 100,000 lines, and names the file of which it has a part', async () => {
    await start('large');
    expect(root.querySelectorAll('.list-row').length).toBeLessThan(60);
    expect(texts('.count')[0]).toContain('only the newest part of trainer.log is listed');
  });

  it('is searched by words, kind and step, and offers to clear a search without matches', async () => {
    await start();
    await search('alarm');
    expect(new Set(texts('.entry .kind'))).toEqual(new Set(['alarm']));
    await search('step 139 finished');
    expect(texts('.entry')).toHaveLength(1);
    await search('no such line');
    expect(texts('.notice h2')).toEqual(['No line matches']);
    await click(root.querySelector('.notice vscode-button'));
    expect(texts('.entry').length).toBeGreaterThan(1);
  });

  it('grows while the run trains, and keeps its settings', async () => {
    const host = await start('running', { folder: '/r', schema: 1, view: { level: 'warning', order: 'severity' } });
    const event = { time: '2027-01-01T00:00:00Z', step: 141, kind: 'alarm', message: 'entropy rose over 200 %' };
    host.send(logGrown, { run: runAt(141, 200), entries: [eventLine(JSON.stringify(event)).entry] });
    await settle();
    expect(texts('.entry.level-warning .text')[0]).toBe('entropy rose over 200 %');
    expect(texts('.entry.level-info')).toEqual([]);
  });
});

it('a line shows its JSON, is copied and leads to its file', async () => {
  const host = await start();
  await click(button('Errors first'));
  await click(root.querySelector('.entry'));
  const raw = JSON.parse(root.querySelector('.details pre')!.textContent) as { kind: string };
  expect(raw.kind).toBe('environment_error');
  await click(button('Open events.jsonl'));
  await click(button('Copy line'));
  expect(host.sent.map(({ method }) => method)).toEqual([logCommand.method, logCommand.method]);
  expect(host.sent[0].params).toEqual({ command: 'file', name: 'events.jsonl' });
  press('Escape');
  await settle();
  expect(root.querySelector('.details')).toBeNull();
});

it('an empty log and a failure say what to do', async () => {
  await start('empty');
  expect(texts('.notice h2')).toEqual(['The log is empty']);
  const host = pageHost(logHost('running'));
  host.refuse(logReady.method, 'the disk is gone');
  root = freshPage();
  startLog(host, root);
  await settle();
  expect(texts('.notice p')[0]).toBe('the disk is gone');
  host.accept(logReady.method);
  await click(button('Try again'));
  expect(texts('.entry').length).toBeGreaterThan(1);
});
