// The views on runs in every standing, made by fixtures/make-run.mjs: the tree's groups, the pages, and their return after a
// reload. Pictures in light and dark go to test-results/.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from './editor.mjs';
import { makeRuns, touchLease } from './fixtures/make-run.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);
let heart;

before(async () => {
  const [alive] = makeRuns(workspace);
  touchLease(alive);
  heart = setInterval(() => touchLease(alive), 1000);
  editor = await Editor.start(workspace);
});
after(async () => {
  clearInterval(heart);
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

scenario('the tree groups runs by where they stand', async () => {
  const items = await editor.showRuns();
  await until('eight tree items', async () => (await items.count()) >= 8);
  const labels = await items.evaluateAll(rows => rows.map(row => row.getAttribute('aria-label')));
  const text = labels.join(' | ');
  assert.match(text, /Running.*frozen-lake, rollout, step 12\/40 · success \d+ %/);
  assert.match(text, /Failed or interrupted.*countdown, failed, step 3\/40.*lake-long, interrupted.*step 23\/40/);
  assert.match(text, /Finished.*sokoban-grpo, finished, step 40\/40.*Stopped.*bandit, stopped, step 7\/40/);
  const status = editor.page.locator('.statusbar-item', { hasText: 'frozen-lake 12/40' });
  await status.waitFor();
});

scenario('a click on a run opens its dashboard, and the Episodes page opens an episode', async () => {
  await editor.page.getByRole('treeitem', { name: /sokoban-grpo/ }).click();
  const dashboard = await editor.webview('canvas');
  await dashboard.getByText('sokoban-grpo').first().waitFor();
  await editor.picture('dashboard-dark');
  await editor.command('RAGEN: Open Episodes');
  const episodes = await editor.webview('.episode-row');
  await episodes.locator('.episode-row').nth(2).click();
  await episodes.getByText('I must avoid the hole').first().waitFor();
  await editor.picture('episodes-dark');
  await editor.theme('light');
  await editor.picture('episodes-light');
});

scenario('both pages come back after a reload of the window', async () => {
  await editor.reload();
  await editor.webview('.episode-row');
  await editor.page.getByRole('tab', { name: /sokoban-grpo · Dashboard/ }).click();
  await editor.webview('canvas');
  await editor.picture('dashboard-light');
});
