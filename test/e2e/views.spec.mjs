// The views on runs in every standing, made by fixtures/make-run.mjs: the tree's groups, the pages, and their return after a
// reload. Pictures in light and dark go to test-results/.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Editor, makeWorkspace, until } from './editor.mjs';
import { makeRuns, touchLease } from './fixtures/make-run.mjs';

const workspace = makeWorkspace();
let editor;
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

test('the tree groups runs by where they stand', async () => {
  const items = await editor.showRuns();
  await until('eight tree items', async () => (await items.count()) >= 8);
  const texts = (await items.allInnerTexts()).map(text => text.replace(/\s+/g, ' ').trim());
  assert.match(texts.join(' | '), /Running 1 \| frozen-lake step 12\/40 · success \d+ %/);
  assert.match(texts.join(' | '), /Failed or interrupted 2/);
  assert.match(texts.join(' | '), /Finished 1 \| sokoban-grpo step 40\/40/);
  assert.match(texts.join(' | '), /Stopped 1 \| bandit step 7\/40/);
  const status = editor.page.locator('.statusbar-item', { hasText: 'frozen-lake 12/40' });
  await status.waitFor();
});

test('a click on a run opens its dashboard, and the Episodes page opens an episode', async () => {
  await editor.page.getByRole('treeitem', { name: /sokoban-grpo/ }).click();
  const dashboard = await editor.webview('canvas');
  await dashboard.getByText('sokoban-grpo').first().waitFor();
  await editor.picture('dashboard-dark');
  await editor.command('RAGEN: Open Episodes');
  await editor.webview('[data-episode], [role="listbox"], [role="grid"]');
  await editor.picture('episodes-dark');
  await editor.theme('light');
  await editor.picture('episodes-light');
});

test('both pages come back after a reload of the window', async () => {
  await editor.reload();
  await editor.webview('[data-episode], [role="listbox"], [role="grid"]');
  await editor.page.getByRole('tab', { name: /sokoban-grpo · Dashboard/ }).click();
  await editor.webview('canvas');
  await editor.picture('dashboard-light');
});
