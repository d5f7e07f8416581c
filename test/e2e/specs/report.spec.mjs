// Report, leaderboard and data sets in the real editor: the report of two stored runs as a file, the leaderboard of stored
// evaluations with its files, and the listed episodes in every format.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { after, before } from 'node:test';
import { parquetMetadata } from 'hyparquet';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { restoreRun } from '../fixtures/stored-run.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
let editor;
let lake;
const scenario = scenarios(() => editor);

/** Copies a run's manifest as the run of an evaluation of `model`, with a result. */
function makeEvaluation(from, id, { model, mean, temperature = 0.5 }) {
  const manifest = JSON.parse(readFileSync(join(from, 'manifest.json'), 'utf8'));
  delete manifest.sha256;
  const folder = join(dirname(from), id);
  mkdirSync(folder);
  const write = (name, value) => writeFileSync(join(folder, name), JSON.stringify(value));
  Object.assign(manifest, { id, name: id, model: { ...manifest.model, path: model } });
  manifest.config.actor_rollout_ref.rollout.val_kwargs.temperature = temperature;
  write('manifest.json', manifest);
  const status = JSON.parse(readFileSync(join(from, 'status.json'), 'utf8'));
  write('status.json', { ...status, total_steps: 0, step: 0, episodes: { done: 96, of: 96 } });
  const success = { groups: 12, episodes: 96, success: { mean, low: mean - 0.09, high: mean + 0.09 }, pass_at: {} };
  write('evaluation.json', {
    ...{ run: id, created: manifest.created, group_size: 8, overall: success, generated_tokens: 5184, wall_s: 9 },
    tags: { QuickFrozenLake: { ...success, failed_environments: 0, versions: ['v1'] } },
  });
}

before(async () => {
  lake = restoreRun(workspace, 'lake-run');
  restoreRun(workspace, 'collapsing-run');
  makeEvaluation(lake, '20261101-100000-eval-tiny-0001', { model: 'ragen-tiny', mean: 0.3 });
  makeEvaluation(lake, '20261101-100000-eval-large-0002', { model: 'Qwen/Qwen3-4B', mean: 0.8 });
  makeEvaluation(lake, '20261101-100000-eval-hot-0003', { model: 'ragen-tiny', mean: 0.2, temperature: 1 });
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const pressEnterIn = async placeholder => {
  await editor.page.locator('.quick-input-widget', { hasText: placeholder }).locator('input.input').waitFor();
  await editor.page.keyboard.press('Enter');
};

scenario('a report of selected runs is written as an HTML file', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Export Report');
  const list = editor.page.locator('.quick-input-widget');
  for (const name of ['2-algorithms Dr. GRPO seed 10000', '3-collapse quickstart seed 10000'])
    await list
      .locator('.quick-input-list .monaco-list-row', { hasText: name })
      .first()
      .locator('.quick-input-list-checkbox, .monaco-checkbox, input[type=checkbox]')
      .first()
      .click();
  await list.getByRole('button', { name: 'OK' }).click();
  await list.locator('.quick-input-list .monaco-list-row', { hasText: 'One file for any browser' }).click();
  await pressEnterIn('Export Report');
  const html = await until('the report', () => readFileSync(join(workspace, 'report.html'), 'utf8'));
  assert.match(html, /<h2>Differences of the configurations<\/h2>/);
  assert.match(html, /Content-Security-Policy/);
  const page = await editor.browser.newPage();
  try {
    await page.setContent(html);
    const chart = page.locator('figure.chart svg').first();
    await chart.hover();
    await page.locator('figure.chart .tip:not([hidden])').first().waitFor();
    for (const [colorScheme, width] of [
      ['light', 1100],
      ['dark', 1100],
      ['light', 600],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 1600 });
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        `overflow at ${width} px`,
      );
    }
  } finally {
    await page.close();
  }
});

scenario('the leaderboard compares evaluations with equal settings, and is saved as CSV', async () => {
  await editor.command('RAGEN: Open Leaderboard');
  const frame = await editor.webview('.leaderboard');
  const tables = frame.locator('.leaderboard table');
  await tables.nth(1).waitFor();
  assert.deepEqual(await tables.first().locator('tbody th').allInnerTexts(), ['Qwen/Qwen3-4B', 'ragen-tiny']);
  await frame.getByText('sampling: temperature: 1 instead of 0.5').waitFor();
  await editor.picture('leaderboard-dark');
  await frame.getByRole('button', { name: 'Save as CSV' }).click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await editor.page.keyboard.press('Enter');
  const csv = await until('the file', () => readFileSync(join(workspace, 'leaderboard.csv'), 'utf8'));
  assert.equal(csv.trim().split('\n').length, 4);
  assert.match(csv, /^1,Qwen\/Qwen3-4B,QuickFrozenLake,96,0\.8,/m);
  await frame.getByRole('button', { name: 'Save as Markdown' }).click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await editor.page.keyboard.press('Enter');
  const markdown = await until('the file', () => readFileSync(join(workspace, 'leaderboard.md'), 'utf8'));
  assert.match(markdown, /^\| Qwen\/Qwen3\\-4B \| 80\\\.0 %/m);
});

scenario('the leaderboard is readable in the light theme and in a narrow window, and opens an evaluation', async () => {
  await editor.theme('light');
  const frame = await editor.webview('.leaderboard');
  await editor.picture('leaderboard-light');
  await editor.page.setViewportSize({ width: 600, height: 900 });
  assert.ok(await frame.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow at 600 px');
  await editor.picture('leaderboard-600');
  await editor.page.setViewportSize({ width: 1440, height: 900 });
  await editor.theme('dark');
  const row = frame.locator('.leaderboard tbody tr', { hasText: 'Qwen/Qwen3-4B' });
  await row.getByRole('button').click();
  const dashboard = await editor.webview('.top-bar');
  await dashboard.locator('h1', { hasText: '20261101-100000-eval-large-0002' }).waitFor();
});

/** Exports the episodes that the page lists; `choose` answers the question for the place. */
async function exportAs(label, detail, choose) {
  const frame = await editor.webview('.side-head');
  await frame.getByRole('button', { name: 'Export data set' }).click();
  const rows = editor.page.locator('.quick-input-list .monaco-list-row');
  await rows.filter({ hasText: detail }).first().waitFor();
  await editor.picture(`export-${label}`);
  await rows.filter({ hasText: detail }).first().click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await choose();
}

const linesOf = file =>
  until('the data set', () => existsSync(file) && readFileSync(file, 'utf8').trim().split('\n').map(JSON.parse));

for (const [format, detail, keys] of [
  ['dpo', 'prompt, chosen, rejected', ['prompt', 'chosen', 'rejected']],
  ['sft', 'for supervised fine-tuning', ['messages']],
  ['messages', 'messages and metadata', ['messages', 'metadata']],
])
  scenario(`the listed episodes are exported as ${format}`, async () => {
    if (format === 'dpo') {
      await editor.command('View: Close All Editors'); // the command acts on the run of an open dashboard
      await editor.showRuns();
      await editor.command('RAGEN: Open Episodes');
      await editor.choose('2-algorithms Dr. GRPO seed 10000');
    }
    await exportAs(format, detail, () => editor.page.keyboard.press('Enter'));
    const [first] = await linesOf(join(workspace, `${basename(lake)}-${format}.jsonl`));
    for (const key of keys) assert.ok(key in first, `${key} is missing: ${Object.keys(first).join()}`);
  });

scenario('only the episodes of the page’s filter are exported, as Parquet', async () => {
  const frame = await editor.webview('.side-head');
  const filter = frame.getByRole('textbox', { name: /filter/i }).first();
  await filter.fill('mode:val');
  await filter.press('Enter');
  await exportAs('parquet', 'One table', () => editor.page.keyboard.press('Enter'));
  const file = join(workspace, `${basename(lake)}-parquet.parquet`);
  const bytes = await until('the table', () => existsSync(file) && readFileSync(file));
  const validations = readdirSync(join(lake, 'episodes')).filter(name => /^val-\d+\.jsonl$/.test(name));
  const stored = validations.flatMap(name =>
    readFileSync(join(lake, 'episodes', name), 'utf8')
      .trim()
      .split('\n'),
  );
  assert.equal(Number(parquetMetadata(new Uint8Array(bytes).buffer).num_rows), stored.length);
});

scenario('the listed episodes are exported as a folder of ATIF files', async () => {
  await exportAs('atif', 'one trajectory file per episode', () => editor.answer(`${workspace}/`));
  const folder = join(workspace, `${basename(lake)}-atif`);
  const files = await until('the trajectories', () => existsSync(folder) && readdirSync(folder, { recursive: true }));
  const trajectory = files.find(name => name.endsWith('.json'));
  assert.match(JSON.parse(readFileSync(join(folder, trajectory), 'utf8')).schema_version, /^ATIF-v1/);
});
