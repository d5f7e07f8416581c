// @vitest-environment happy-dom
// No page treats a text of a model, an environment, a run folder or a person as markup: each page is opened on a host
// with hostile texts, used in all its parts, and must contain only its own elements.
import { readFileSync } from 'node:fs';
import { beforeEach, expect, it, vi } from 'vitest';
import { dashboardLines } from '../../../extension/protocol/dashboard-page';
import type { PlayReply } from '../../../extension/protocol/environment-tools';
import { liveEpisode, liveTokens } from '../../../extension/protocol/live-page';
import { newRunCheck, newRunPlan, newRunReady } from '../../../extension/protocol/new-run-page';
import { startCollapse } from '../../../webview/collapse/page';
import { startCompare } from '../../../webview/compare/page';
import { startDashboard } from '../../../webview/dashboard/page';
import { startEpisodes } from '../../../webview/episodes/page';
import { startLive } from '../../../webview/live/page';
import { startNewRun } from '../../../webview/new-run/page';
import { startRunTable } from '../../../webview/run-table/page';
import { startPlay } from '../../../webview/play/page';
import { startTimeline } from '../../../webview/timeline/page';
import { startLog } from '../../../webview/log/page';
import { startSweepPage } from '../../../webview/sweep/page';
import { markupCorpus } from '../../e2e/fixtures/markup-corpus.mjs';
import { storedFiles } from '../../e2e/fixtures/stored-run.mjs';
import { comparedHost } from '../../e2e/preview/compared-host';
import { episodesOf, runAt, runEvents } from '../../e2e/preview/data';
import { liveHost, watchedEpisode } from '../../e2e/preview/live-host';
import { memoryHost, type MemoryHost } from '../../e2e/preview/memory-host';
import { runTableHost } from '../../e2e/preview/run-table-host';
import { storedHost } from '../../e2e/preview/stored-host';
import { timelineHost } from '../../e2e/preview/timeline-host';
import { logHost } from '../../e2e/preview/log-host';
import { expectTextAlone, HostileTexts, shownOf } from './hostile-host';
import { freshPage, pageHost, press, recordingPlotter, settle, stubVisibility } from './page-host';

const guide = readFileSync('docs/METRICS.md', 'utf8');
let root: HTMLElement;

beforeEach(() => {
  stubVisibility();
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  root = freshPage();
});

const click = async (element: Element | null | undefined) => {
  element?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
};
/** Presses keys one after the other, and checks the page after each. */
const keys = async (...names: string[]) => {
  for (const name of names) {
    press(name);
    await settle();
    expectTextAlone(root);
  }
};

it('the dashboard shows names, events, metrics and the table as plain text', async () => {
  const texts = new HostileTexts(memoryHost('failed', guide));
  const host = pageHost(texts);
  startDashboard(host, root, recordingPlotter().plotter);
  await settle();
  for (const fold of root.querySelectorAll('.fold')) await click(fold);
  expectTextAlone(root);
  const events = markupCorpus.map((message, i) => ({
    ...runEvents(140)[0],
    message,
    step: i,
    kind: i % 2 ? ('alarm' as const) : ('warning' as const),
  }));
  host.send(dashboardLines, { run: texts.hostile(runAt(57, 200, { phase: 'x', error: 'y' })), lines: [], events });
  await settle();
  const seen = new Set(shownOf(root));
  await keys('t', 'e', '?');
  for (const text of shownOf(root)) seen.add(text);
  expect(markupCorpus.filter(text => !seen.has(text))).toEqual([]);
});

it('the episodes page shows its list, prompts, states, thoughts, answers, raw texts and side-by-side groups as plain text', async () => {
  startEpisodes(pageHost(new HostileTexts(memoryHost('hostile', guide))), root);
  await settle();
  const seen = new Set<string>();
  const rows = () => [...root.querySelectorAll<HTMLElement>('.episode-row')];
  for (let i = 0; i < 6; i++) {
    await click(rows()[i]);
    expectTextAlone(root);
    for (const text of shownOf(root)) seen.add(text);
  }
  await keys('r', 'r', 'g', 'c', 'o', 'Escape', 't', '?');
  expect(seen.size).toBeGreaterThan(12);
});

it('the collapse page shows prompts, reasoning texts, groups and events as plain text', async () => {
  startCollapse(pageHost(new HostileTexts(storedHost(storedFiles('collapsing-run'), guide))), root);
  await settle();
  for (const details of root.querySelectorAll('details')) details.open = true;
  expectTextAlone(root);
  await keys('ArrowLeft', 'Home', 'End');
  for (const choice of [...root.querySelectorAll('button, summary, .group-row')].slice(0, 40)) {
    await click(choice);
    expectTextAlone(root);
  }
  expect(shownOf(root).length).toBeGreaterThan(2);
});

it('the comparison shows names, points of sweeps, settings and metrics as plain text', async () => {
  const csv = readFileSync('test/experiments/results/1-filter.csv', 'utf8');
  startCompare(pageHost(new HostileTexts(comparedHost(csv, guide))), root, recordingPlotter().plotter);
  await settle();
  expectTextAlone(root);
  expect(shownOf(root).length).toBeGreaterThan(5);
});

it('the log shows lines and their JSON as plain text', async () => {
  startLog(pageHost(new HostileTexts(logHost('running'))), root);
  await settle();
  expectTextAlone(root);
  for (const row of [...root.querySelectorAll('.entry')].slice(0, 12)) {
    await click(row);
    expectTextAlone(root);
  }
  expect(shownOf(root).length).toBeGreaterThan(2);
});

it('the timeline shows names of runs, calls, requests and episodes as plain text', async () => {
  startTimeline(pageHost(new HostileTexts(timelineHost('remote'))), root);
  await settle();
  await click(root.querySelector('[aria-label="Table view"]'));
  await click(root.querySelector('tbody .link'));
  expectTextAlone(root);
  await keys('n', 'e');
  for (const link of [...root.querySelectorAll('tbody .link')].slice(0, 12)) {
    await click(link);
    expectTextAlone(root);
  }
  expect(shownOf(root).length).toBeGreaterThan(2);
});

it('the live view shows states, incoming tokens, thoughts, answers and errors as plain text', async () => {
  const texts = new HostileTexts(liveHost('playing'));
  const host = pageHost(texts);
  startLive(host, root);
  await settle();
  const episode = episodesOf(13, 'train').find(({ turns }) => turns.length > 2)!;
  host.send(liveEpisode, { episode: texts.hostile({ ...watchedEpisode(episode, 2, 3), error: 'the end' }) });
  const tokens = markupCorpus.map(text => ({ text, logprob: -1 }));
  const at = watchedEpisode(episode, 2, 3);
  host.send(liveEpisode, { episode: at });
  host.send(liveTokens, { id: at.id, turn: 3, at: 3, tokens });
  await settle();
  expectTextAlone(root);
  expect(shownOf(root)).toEqual(markupCorpus);
});

const shown = (observation: string) => ({
  observation,
  reward: 1,
  terminated: false,
  truncated: false,
  info: { a: 'b' },
});

it('the Play panel shows observations, actions, legends, infos, hints, differences and errors as plain text', async () => {
  const session: PlayReply['session'] = {
    ...{ environment: 'maze', source: '/w/maze.ts', version: '0123456789abcdef', files: ['/w/maze.ts'], seed: 7 },
    ...{
      config: { size: 4, text: 'x' },
      instruction: 'Go.',
      legend: { P: 'you' },
      has_solver: true,
      total: 1,
      over: false,
    },
    actions: markupCorpus.map((name, id) => ({ id, name })),
    first: { observation: 'start', images: ['AAAA'] },
    steps: markupCorpus.map((text, action) => ({ ...shown(text), action, name: text, info: { [text]: text } })),
    hint: ['Left', 'Up'],
    reloaded: { from: 'a', differences: [{ step: 1, what: 'observation', before: 'was', after: 'is' }] },
  };
  const honest: MemoryHost = { answer: () => ({ id: 0, session, error: { message: 'it threw', at: '/w/maze.ts:3' } }) };
  startPlay(pageHost(new HostileTexts(honest)), root);
  await settle();
  expectTextAlone(root);
  expect(markupCorpus.filter(text => !shownOf(root).includes(text))).toEqual([]);
  for (const row of [...root.querySelectorAll('.step-row')].slice(0, 12)) {
    await click(row);
    expectTextAlone(root);
  }
});

it('New Run shows presets, fields, tags, the estimate, problems and the YAML as plain text', async () => {
  const problems = [
    { key: 'seed.train', message: 'wrong' },
    { key: '', message: 'all wrong' },
  ];
  const honest: MemoryHost = {
    answer: method =>
      method === newRunReady.method
        ? {
            presets: markupCorpus.map(name => ({ id: name, name, description: name })),
            engines: markupCorpus.map(name => ({ name, url: name, about: name, abilities: { critic: false } })),
            chosen: null,
            prefill: null,
            folders: [
              { path: '/w', name: 'w' },
              { path: '/x', name: 'x' },
            ],
            groups: [
              {
                title: 'Run',
                fields: [{ key: 'seed.train', title: 'Seed', help: 'Which.', kind: 'choice', choices: ['a', 'b'] }],
              },
            ],
          }
        : {
            values: { 'seed.train': 'a' },
            tags: [{ tag: 'Lake', environment: 'frozen_lake' }],
            groups: { train: { Lake: 8 }, val: { Lake: 8 } },
            estimate: {
              ...{
                model: { path: 'tiny', parameters: 4, trained: 'all' },
                fits: false,
                remedy: 'less',
                notes: ['config: so'],
              },
              ...{
                peak: { phase: 'update', bytes: 1 },
                available: 2,
                rows: [{ what: 'x', bytes: 1, how: 'so', phase: 'p' }],
              },
              time: { step_s: 1, generation_s: 1, total_s: 1, basis: 'measured', run: { id: 'r', name: 'first' } },
            },
            problems: method === newRunCheck.method ? [] : problems, // the page plans what is sound
            yaml: markupCorpus.join('\n'),
          },
  };
  const host = pageHost(new HostileTexts(honest));
  startNewRun(host, root);
  await vi.waitFor(() => expect(host.asked).toContain(newRunPlan.method)); // input is planned after a delay
  await settle();
  expectTextAlone(root);
  expect(markupCorpus.filter(text => !shownOf(root).includes(text))).toEqual([]);
});

it('the run table shows names, tags, notes, keys and values as plain text', async () => {
  startRunTable(pageHost(new HostileTexts(runTableHost(12, guide))), root);
  for (let turn = 0; turn < 6; turn++) await settle();
  expectTextAlone(root);
  await keys('c');
  await click(root.querySelector('[aria-label^="Edit notes"]'));
  expectTextAlone(root);
});

it('every page shows the message of a refusal as plain text', async () => {
  const message = markupCorpus.join(' ');
  const refusing = () =>
    pageHost({
      answer() {
        throw new Error(message);
      },
    });
  const { plotter } = recordingPlotter();
  const starts: [string, () => void][] = [
    ['dashboard', () => startDashboard(refusing(), root, plotter)],
    ['episodes', () => startEpisodes(refusing(), root)],
    ['collapse', () => startCollapse(refusing(), root)],
    ['compare', () => startCompare(refusing(), root, plotter)],
    ['live', () => startLive(refusing(), root)],
    ['timeline', () => startTimeline(refusing(), root)],
    ['run table', () => startRunTable(refusing(), root)],
    ['log', () => startLog(refusing(), root)],
    ['sweep', () => startSweepPage(refusing(), root)],
    ['play', () => startPlay(refusing(), root)],
    ['new run', () => startNewRun(refusing(), root)],
  ];
  for (const [page, start] of starts) {
    root = freshPage();
    start();
    await settle();
    expectTextAlone(root);
    expect(root.textContent, page).toContain(message);
  }
});
