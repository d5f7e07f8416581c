// Report, leaderboard and data set in the real editor: the report of two stored runs as a file, the leaderboard of stored
// evaluations with its CSV file, and the listed episodes as preference pairs.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { after, before } from 'node:test';
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
});

scenario('the listed episodes are exported as preference pairs', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Open Episodes');
  await editor.choose('2-algorithms Dr. GRPO seed 10000');
  const frame = await editor.webview('.side-head');
  await frame.getByRole('button', { name: 'Export data set' }).click();
  await editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'prompt, chosen, rejected' }).click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await editor.page.keyboard.press('Enter');
  const file = join(workspace, `${basename(lake)}-dpo.jsonl`);
  const lines = await until('the data set', () => existsSync(file) && readFileSync(file, 'utf8').trim().split('\n'));
  assert.deepEqual(Object.keys(JSON.parse(lines[0])), ['prompt', 'chosen', 'rejected']);
});
