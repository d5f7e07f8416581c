// Runs of other trainers beside an own run in the real editor: a run of this product's trainer and a run of verl are
// drawn on one chart of the comparison, and the dashboard of an evaluation of verifiers has its results.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios } from '../editor.mjs';
import { restoreRun, storedFiles } from '../fixtures/stored-run.mjs';
import { root } from '../install.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const elsewhere = mkdtempSync(join(tmpdir(), 'ragen-trainers-'));
const own = JSON.parse(storedFiles('lake-run')['manifest.json']).name;
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  restoreRun(workspace, 'lake-run');
  for (const [from, to] of [
    ['verl', 'lake'],
    ['verifiers-lake-count', 'count'],
  ])
    cpSync(join(root, 'test/golden/foreign-runs', from), join(elsewhere, to), { recursive: true });
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  for (const folder of [workspace, elsewhere]) rmSync(folder, { recursive: true, force: true });
});

async function open(name) {
  await editor.command('RAGEN: Open Run of Another Trainer');
  await editor.choose('Type a path');
  await editor.answer(join(elsewhere, name));
}

async function pick(name) {
  const row = editor.page.locator('.quick-input-list .monaco-list-row', { hasText: name });
  await row.first().waitFor();
  await row.first().locator('.quick-input-list-checkbox, .monaco-checkbox, input[type=checkbox]').first().click();
}

scenario('a run of this product and a run of verl are drawn on one chart', async () => {
  await editor.showRuns();
  await open('lake');
  const dashboard = await editor.webview('.top-bar');
  await dashboard.locator('.facts', { hasText: '3 / 3' }).waitFor();
  await editor.command('RAGEN: Compare Runs');
  await pick(own);
  await pick('frozenlake_grpo');
  await editor.page.locator('.quick-input-widget').getByRole('button', { name: 'OK' }).click();
  const page = await editor.webview('.compare-table');
  for (const run of [own, 'frozenlake_grpo']) await page.locator('tbody tr', { hasText: run }).first().waitFor();
  // The label has the newest value of each run that has a line in the chart.
  const chart = page.locator('.chart canvas[aria-label^="Chart of Reward. "]').first();
  const label = await chart.getAttribute('aria-label');
  assert.match(label, /Dr\. GRPO seed 10000: 0\.796; frozenlake_grpo: 0\.750$/);
  await editor.picture('compare-trainers');
});

scenario('the dashboard of an evaluation of verifiers has its rewards and counts as a table', async () => {
  await open('count');
  const page = await editor.webview('.run-table');
  await page.locator('.facts', { hasText: '6 / 18' }).waitFor();
  const shows = (key, value) =>
    page
      .locator('tbody tr', { has: page.locator('th', { hasText: key }) })
      .locator('td:first-of-type', { hasText: new RegExp(`^\\s*${value.replace('.', '\\.')}\\s*$`) })
      .first()
      .waitFor();
  await shows('val-env/num_prompts', '2'); // the metrics follow the rollouts
  await shows('val-env/lake-count-v1/num_episodes', '6');
  await shows('val-env/charts/avg_episode_return', '0.167');
  await editor.picture('evaluation-of-verifiers');
});
