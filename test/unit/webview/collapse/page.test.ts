// @vitest-environment happy-dom
// The Collapse page on real runs: what it shows at a step, how it moves through steps, and which data it requests from
// the host.
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  collapseCommand,
  collapseFamilyAt,
  collapseLines,
  collapseReady,
  groupsAt,
} from '../../../../extension/protocol/collapse-page';
import { textProxyFigures } from '../../../../extension/run-data/text-proxy';
import { startCollapse } from '../../../../webview/collapse/page';
import { storedFiles } from '../../../e2e/fixtures/stored-run.mjs';
import { hostileTexts } from '../../../e2e/preview/data';
import { storedHost, type StoredFiles } from '../../../e2e/preview/stored-host';
import { freshPage, pageHost, press, settle } from '../page-host';

const guide = readFileSync('docs/METRICS.md', 'utf8');
const collapsing = storedFiles('collapsing-run');
const diagnosed = storedFiles('diagnosed-run');

beforeEach(() =>
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  ),
);

async function open(files: StoredFiles, { until = Infinity, kept }: { until?: number; kept?: unknown } = {}) {
  const root = freshPage();
  const host = pageHost(storedHost(files, guide, until), kept);
  startCollapse(host, root);
  await settle();
  const text = (selector: string) => root.querySelector(selector)?.textContent ?? '';
  const all = (selector: string) => [...root.querySelectorAll<HTMLElement>(selector)];
  const click = async (element: Element | undefined | null) => {
    element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    await settle();
  };
  const key = async (name: string) => {
    press(name);
    await settle();
  };
  return { root, host, text, all, click, key };
}

describe('the Collapse page', () => {
  it('shows the latest diagnosis: ring, regimes, interpretation and the two texts of a cell', async () => {
    const { text, all, root } = await open(collapsing);
    expect(text('h1')).toBe('3-collapse quickstart seed 10000');
    expect(text('.where')).toBe('step 90 of 90');
    expect(text('.headline')).toBe('Reasoning still differs between prompts, but under one prompt it hardly varies.');
    expect(all('.regime').map(({ textContent }) => textContent)).toEqual([
      'compressed reasoning',
      'diverse reasoning',
      'low-entropy collapse',
      'template collapse',
    ]);
    expect(root.querySelector('.ring')).not.toBeNull();
    expect(root.querySelectorAll('.plane .stop')).toHaveLength(42);
    expect(root.querySelector('.plane-field')!.getAttribute('aria-label')).toContain(
      'Step 90, compressed reasoning (99.9 % sure): H(Z|X) 0.139 (0.0920 to 0.193)',
    );
    expect(text('.cell-words')).toMatch(
      /^Row 1, column 1: log-prob −0\.00890 per token, under its own prompt; rank 1 of 16\. train-000090-g005-m01, turn 1/,
    );
    expect(all('.cell-text')[0].textContent).toMatch(/^Me \(0, 2\), goal \(0, 1\)/);
    expect(all('.cell-text')[1].textContent).toMatch(/^Start: \(0, 2\)\nGoal: \(0, 1\)/);
  });

  it('draws retrieval against chance and each Echo-Trap signal against its alarm’s threshold', async () => {
    const { root } = await open(collapsing);
    const values = (id: string) => root.querySelector(`[data-chart="${id}"] .small-values`)!.textContent;
    expect(values('retrieval')).toBe('now85.9 %chance6.3 %');
    expect(values('rollout/in_group_reward_std')).toBe('now0.207alarm under0.0350');
    expect(values('actor/entropy')).toBe('now0.113alarm over0.413alarm under0.0206');
    expect(root.querySelector('[data-chart="retrieval"] h3')!.getAttribute('title')).toContain(
      'retrieval_accuracy\nShare of reasoning texts that are more likely under their own prompt',
    );
    const hint = (id: string) => root.querySelector(`[data-chart="${id}"] h3`)!.getAttribute('title');
    expect(hint('actor/entropy')).toMatch(/\n\nAlarm bound: a rule of thumb\.$/);
    expect(hint('collapse_trajectory_sample/mi_estimate')).toMatch(
      /Alarm bound: measured: in time in 10 of 12 collapses/,
    );
  });

  it('shows the text-only proxy of I(X;Z) with its rank correlation with I(X;Z), in runs that have it', async () => {
    expect((await open(collapsing)).root.querySelector('[data-chart="text-proxy"]')).toBeNull();
    const lines = collapsing['metrics.jsonl']
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as object);
    const metrics = lines.map(line => JSON.stringify({ ...line, 'thoughts/prompt_information': 0.25 })).join('\n');
    const { root } = await open({ ...collapsing, 'metrics.jsonl': `${metrics}\n` });
    const chart = root.querySelector('[data-chart="text-proxy"]')!;
    expect(chart.querySelector('h3')!.textContent).toBe('Text-only proxy of I(X;Z)');
    const { correlation, low, high, diagnoses, runs } = textProxyFigures;
    expect(chart.textContent).toContain(
      `rank correlation with I(X;Z) ${correlation} (${low} to ${high}) over ${diagnoses} diagnoses of ${runs} small runs`,
    );
  });

  it('moves by arrow keys, slider and ends, requesting only the visible step', async () => {
    const { host, text, key, root } = await open(collapsing);
    await key('ArrowLeft');
    expect(text('.where')).toBe('step 88 of 90');
    await key('Home');
    expect(text('.where')).toBe('step 1 of 90');
    expect(text('.headline')).toBe('Reasoning has begun to depend on the prompt.');
    await key('ArrowRight');
    expect(text('.where')).toBe('step 2 of 90');
    const slider = root.querySelector<HTMLInputElement>('.scrubber input')!;
    slider.value = '45';
    slider.dispatchEvent(new Event('input'));
    await settle();
    expect(text('.where')).toBe('step 45 of 90 · diagnosed at 44');
    expect(text('.matrix-part .at')).toBe('step 44');
    await key('End');
    expect(text('.where')).toBe('step 90 of 90');
    expect(host.asked.filter(method => method === collapseReady.method)).toHaveLength(1);
    expect((host.getState() as { view: { step: null } }).view.step).toBeNull();
  });

  it('keeps family and step, and restores them', async () => {
    const { text, all } = await open(collapsing, {
      kept: { folder: '/r', schema: 1, view: { family: 'collapse_trajectory_sample', step: 44 } },
    });
    expect(text('.where')).toBe('step 44 of 90');
    expect(all('.choice').map(choice => choice.getAttribute('aria-pressed'))).toEqual(['false', 'true', 'false']);
    expect(text('.cell-words')).toContain('rank 1 of 64');
  });

  it("moves from cell to cell by keys, and opens a cell's episode", async () => {
    const { root, text, host } = await open(collapsing);
    const canvas = root.querySelector('.matrix canvas')!;
    for (const name of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowLeft']) press(name, canvas);
    expect(text('.cell-words')).toMatch(/^Row 2, column 2: .* relative to its own prompt; rank \d+ of 16/);
    press('Home', canvas);
    expect(text('.cell-words')).toMatch(/^Row 2, column 1: .* its own prompt/);
    press('Enter', canvas);
    expect(text('.where')).toBe('step 90 of 90'); // the keys belong to the matrix
    const id = /train-\S+(?=,)/.exec(text('.cell-words'))![0];
    expect(host.sent).toEqual([{ method: collapseCommand.method, params: { command: 'episode', step: 90, id } }]);
  });

  it('offers the matrix as a table for accessibility', async () => {
    const { root, all } = await open(collapsing);
    const details = root.querySelector<HTMLDetailsElement>('.matrix-table')!;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(details.querySelectorAll('tbody tr')).toHaveLength(64);
    expect(all('.matrix-table tbody tr')[0].textContent).toMatch(/^train-000090-g005-m011−0\.00890its ownMe \(0, 2\)/);
  });

  it('shows what the filter kept and why, and opens an episode of the reward matrix', async () => {
    const { text, all, click, host, root } = await open(diagnosed);
    expect(text('.filter-words')).toMatch(/^top_p 0.9 of reward variance \(linear\): kept 7 of 12; groups whose/);
    expect(all('tr.kept')).toHaveLength(7);
    expect(all('tr.dropped .verdict').at(-1)!.textContent).toBe('dropped all 8 episodes score 0');
    const cells = all('.score button');
    expect(cells).toHaveLength(96);
    expect(cells.filter(cell => cell.tabIndex === 0)).toHaveLength(1);
    press('ArrowDown', cells[0]);
    const now = root.ownerDocument.activeElement as HTMLElement;
    expect([now.dataset.row, now.dataset.member]).toEqual(['1', '0']);
    await click(now);
    expect(host.sent).toEqual([
      { method: collapseCommand.method, params: { command: 'episode', step: 3, id: now.dataset.episode } },
    ]);
  });

  it('shows gradients by bucket, after or before the filter', async () => {
    const { text, all, click } = await open(diagnosed);
    expect(text('.gradients .caption')).toMatch(/^The task’s gradient rises from 0\.252 .* to 0\.568/);
    expect(all('.bucket-table tbody tr').at(-1)!.textContent).toMatch(/^all7 · 56/);
    await click(all('.gradients .choice')[1]);
    expect(text('.gradients .caption')).toContain('the regularisers dominate the update');
  });

  it('names the override for a missing measurement, and copies it', async () => {
    const { text, all, click, host } = await open(collapsing);
    expect(text('.gradients-part .missing')).toContain('trainer.gradient_analysis_mode=true');
    await click(all('.choice')[2]);
    expect(text('.hero-place .missing')).toContain('workbench.collapse_turn_uniform=true');
    expect(text('.reading .confidence')).toContain('No diagnosis');
    await click(all('.hero-place vscode-button')[0]);
    expect(host.sent).toEqual([
      { method: collapseCommand.method, params: { command: 'copy', text: 'workbench.collapse_turn_uniform=true' } },
    ]);
  });

  it('follows a running run, unless the user looks at an earlier step', async () => {
    const { host, text, key } = await open(collapsing, { until: 20 });
    const lines = collapsing['metrics.jsonl']
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as { step: number });
    const snapshot = storedHost(collapsing, guide, 22).answer(collapseReady.method, null) as {
      run: never;
      diagnosed: never;
      checkpoints: never;
      scoredBy: never;
    };
    const grow = async (step: number) => {
      host.send(collapseLines, { ...snapshot, lines: lines.filter(line => line.step === step), events: [] });
      await settle();
    };
    expect(text('.where')).toBe('step 20 of 20');
    await grow(21);
    expect(text('.where')).toBe('step 21 of 21 · diagnosed at 20');
    await key('Home');
    await grow(22);
    expect(text('.where')).toBe('step 1 of 22');
  });

  it('lists alarms with their evidence, and jumps to their steps', async () => {
    const alarm = {
      time: '2026-01-01T00:00:00Z',
      step: 43,
      kind: 'alarm',
      message: 'entropy rose over 200 %',
      data: { step: 44 },
    };
    const { all, click, text } = await open({ ...collapsing, 'events.jsonl': JSON.stringify(alarm) });
    expect(all('.alarm-list li').map(item => item.textContent)).toEqual(['▲step 44entropy rose over 200 %']);
    await click(all('.alarm-list button')[0]);
    expect(text('.where')).toBe('step 44 of 90');
  });

  it('links a sign to its step and advice to the guide', async () => {
    const { all, click, host, text } = await open(collapsing);
    const [go, why] = all('.reading li .link');
    await click(why);
    expect(host.sent).toEqual([{ method: collapseCommand.method, params: { command: 'explain', anchor: 'the-task' } }]);
    await click(go);
    expect(text('.where')).toBe('step 58 of 90');
  });

  it('reports an unreadable file, and a run without steps', async () => {
    const root = freshPage();
    const host = pageHost(storedHost(collapsing, guide));
    host.refuse(collapseFamilyAt.method, 'diagnostics/collapse-000090.json: no right to read it');
    host.refuse(groupsAt.method, 'gone');
    startCollapse(host, root);
    await settle();
    expect(root.querySelector('.matrix-part [role="alert"]')!.textContent).toContain('no right to read it');
    const empty = await open(collapsing, { until: -1 });
    expect(empty.text('.notice h2')).toBe('No step has finished yet');
  });

  it('never renders a text as markup', async () => {
    const hostile = JSON.parse(collapsing['diagnostics/collapse-000090.json']) as {
      families: { prompts: { text: string }[]; samples: { text: string; episode: string }[] }[];
    };
    for (const { prompts, samples } of hostile.families) {
      prompts.forEach((prompt, i) => (prompt.text = hostileTexts[i % hostileTexts.length]));
      samples.forEach((sample, i) => (sample.text = hostileTexts[i % hostileTexts.length]));
    }
    const { root } = await open({ ...collapsing, 'diagnostics/collapse-000090.json': JSON.stringify(hostile) });
    const details = root.querySelector<HTMLDetailsElement>('.matrix-table')!;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(root.querySelector('.matrix img, .matrix script, .matrix iframe, .matrix a')).toBeNull();
    expect(details.textContent).toContain(hostileTexts[0]);
  });
});
