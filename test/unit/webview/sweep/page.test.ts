// @vitest-environment happy-dom
// The Sweep page: cells with the states of their runs, results with intervals, the paired difference, requests to
// continue and to stop, and settings that are restored.
import { readFileSync } from 'node:fs';
import { beforeEach, expect, it } from 'vitest';
import { sweepChanged, sweepControl, sweepOpen, sweepReady } from '../../../../extension/protocol/sweep-page';
import { initialState } from '../../../../webview/sweep/state';
import { reduce } from '../../../../webview/sweep/reducer';
import { startSweepPage } from '../../../../webview/sweep/page';
import { readTheme } from '../../../../webview/shared/theme';
import { firstSettings } from '../../../../webview/sweep/state';
import { sweepPageHost, sweepPageSnapshot, type SweepPageScenario } from '../../../e2e/preview/sweep-page-host';
import { expectTextAlone, HostileTexts } from '../hostile-host';
import { freshPage, pageHost, settle, type PageHost } from '../page-host';

const guide = readFileSync('docs/METRICS.md', 'utf8');
let root: HTMLElement;
beforeEach(() => (root = freshPage()));

async function open(scenario: SweepPageScenario, kept?: unknown): Promise<PageHost> {
  const host = pageHost(sweepPageHost(scenario, guide), kept);
  startSweepPage(host, root);
  await settle();
  return host;
}
const textOf = (element: Element | null | undefined): string =>
  (element?.textContent ?? '').replace(/\s+/g, ' ').trim();
const rows = (): string[][] =>
  [...root.querySelectorAll('.sweep-grid tbody tr')].map(row => [...row.children].map(textOf));
const buttons = (): string[] =>
  [...root.querySelectorAll<HTMLElement>('vscode-button')].filter(each => !each.hidden).map(textOf);
const press = async (label: string): Promise<void> => {
  const found = [...root.querySelectorAll<HTMLElement>('vscode-button')].find(each => textOf(each) === label);
  expect(found, label).toBeInstanceOf(HTMLElement);
  found!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
};

it('shows the state and the value of each run, and the result of each arm', async () => {
  await open('live');
  expect(textOf(root.querySelector('h1'))).toBe('Sweep filters');
  expect(textOf(root.querySelector('[role=status]'))).toBe(
    'Running, at most 2 runs at a time · 9 of 20 runs finished · 2 training · 1 failed · 4 stopped early · arms are compared at steps 10, 20',
  );
  const [first, , third, last] = rows();
  expect(first.slice(0, 2)).toEqual(['GRPO, no filter', '48.0 % ± 20.7 %']);
  expect(first.slice(3)).toEqual(['39.7 %', '48.0 %', '56.3 %', '46.3 %', 'waiting']);
  expect(third[1]).toBe('65.0 %, 63.3 %'); // two seeds: the values, no interval
  expect(third.slice(3)).toEqual(['65.0 %', 'failed', '63.3 %', 'waiting', 'waiting']);
  expect(last[0]).toBe('PPO, rollout_filter_value=0.9stopped early at step 10: rank 4 of 4 with 20.0 %');
  const standings = [...root.querySelectorAll<HTMLElement>('.sweep-grid .status')].map(each => each.dataset.standing);
  expect(standings.filter(each => each === 'running')).toHaveLength(2);
  const failed = [...root.querySelectorAll('.cell')].find(each => textOf(each) === 'failed')!;
  expect(failed.getAttribute('title')).toContain('started 2 times\ntrainer of run-7: it was killed (SIGKILL)');
});

it('shows three hundred runs, and changes the cell of one', async () => {
  let snapshot = sweepPageSnapshot('hundreds', guide);
  const host = pageHost({ answer: method => (method === sweepReady.method ? snapshot : null) });
  startSweepPage(host, root);
  await settle();
  expect(textOf(root.querySelector('[role=status]'))).toMatch(/ · 200 of 300 runs finished · 2 training$/);
  expect(rows()).toHaveLength(60);
  expect(root.querySelectorAll('.sweep-grid .cell')).toHaveLength(300);
  const grid = root.querySelector('.sweep-grid');
  expect(rows().at(-1)!.at(-1)).toBe('waiting');
  const [point, seed] = [59, 4_010_000];
  const cells = snapshot.cells.map(cell =>
    cell.point === point && cell.seed === seed ? { ...snapshot.cells[0], point, seed } : cell,
  );
  snapshot = { ...snapshot, cells };
  host.send(sweepChanged, null);
  await settle();
  expect(root.querySelector('.sweep-grid')).toBe(grid);
  expect(rows().at(-1)!.at(-1)).toMatch(/^[\d.]+ %$/);
});

it('says how the interval of an arm narrowed', async () => {
  await open('finished');
  expect(textOf(root.querySelector('.interval-picture title'))).toMatch(
    /^Mean 49\.0 % over 5 seeds; 95 % interval ± [\d.]+ % with 3, ± [\d.]+ % with 4, ± [\d.]+ % with 5 seeds$/,
  );
  expect(root.querySelectorAll('.interval-picture')[0].querySelectorAll('circle')).toHaveLength(5);
  expect(buttons()).not.toContain('Continue'); // nothing is left
});

it('shows the paired difference of the chosen arms', async () => {
  await open('finished');
  const facts = () =>
    [...root.querySelectorAll('.difference-facts div')].map(fact => [...fact.children].map(textOf).join(' '));
  expect(facts()[0]).toBe('mean +14.3 pp');
  expect(facts()[1]).toMatch(/^95 % interval \+1\.9 pp … \+26\.8 pp$/);
  expect(facts()[3]).toBe('effect size +1.43');
  expect(root.querySelectorAll('.pair-table tbody tr')).toHaveLength(5);
  const arm = root.querySelector<HTMLElement & { value: string }>('[aria-label="Arm"]')!;
  arm.value = 'PPO, rollout_filter_value=0.9';
  arm.dispatchEvent(new Event('change'));
  await settle();
  expect(facts()[0]).toBe('mean −20.0 pp');
});

it('opens a run’s dashboard, the comparison and the file', async () => {
  const host = await open('live');
  root.querySelector<HTMLElement>('button.cell')!.click();
  await press('Compare curves');
  await press('Open file');
  expect(host.sent).toEqual([
    { method: sweepOpen.method, params: { dashboard: '/runs/0' } },
    { method: sweepOpen.method, params: 'comparison' },
    { method: sweepOpen.method, params: 'file' },
  ]);
});

it('asks once to stop, and shows a refusal', async () => {
  const host = await open('live');
  await press('Stop');
  await press('Stopping…');
  expect(host.asked.filter(method => method === sweepControl.method)).toHaveLength(1);
  root = freshPage();
  const refusing = await open('live');
  refusing.refuse(sweepControl.method, 'the workspace is not trusted');
  await press('Stop');
  expect(textOf(root.querySelector('[role=alert]'))).toBe('the workspace is not trusted');
  expect(buttons()).toContain('Stop');
});

it('a request is pending until a snapshot shows its effect', () => {
  const running = sweepPageSnapshot('live', guide);
  const state = reduce(initialState(firstSettings, readTheme()), { type: 'requested', action: 'stop' });
  const still = reduce(state, { type: 'connected', snapshot: running });
  expect(still.requested).toBe('stop');
  expect(reduce(still, { type: 'connected', snapshot: { ...running, isRunning: false } }).requested).toBeNull();
  expect(reduce(still, { type: 'chosen', part: { at: 'last' } })).toBe(still);
});

it('waits for the plan, and follows the sweep when it changes', async () => {
  const host = await open('planning');
  expect(textOf(root.querySelector('h2'))).toBe('Checking the configurations of the sweep');
  host.send(sweepChanged, null);
  await settle();
  expect(host.asked.filter(method => method === sweepReady.method)).toHaveLength(2);
});

it('counts unfinished runs if asked, and restores the settings', async () => {
  const host = await open('live');
  await press('Count unfinished runs');
  expect(rows()[0][1]).toMatch(/^47\.6 % ± /);
  const kept = host.getState();
  root = freshPage();
  await open('live', kept);
  expect(rows()[0][1]).toMatch(/^47\.6 % ± /);
});

it('shows labels, problems and metrics as plain text', async () => {
  startSweepPage(pageHost(new HostileTexts(sweepPageHost('live', guide))), root);
  await settle();
  expectTextAlone(root);
});
