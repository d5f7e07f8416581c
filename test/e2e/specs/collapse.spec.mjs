// Collapse page in the real editor, on two stored runs (fixtures/stored-run.mjs): a policy that collapsed, and a run
// with every diagnosis enabled. Covers the text, scrubbing, keys of the matrix, opening an episode, the guide,
// overrides, and restoring pages after a reload. Saves screenshots in three themes.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { restoreRun } from '../fixtures/stored-run.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);
before(async () => {
  restoreRun(workspace, 'collapsing-run');
  restoreRun(workspace, 'diagnosed-run');
  editor = await Editor.start(workspace, { settings: { 'workbench.editor.showTabs': 'multiple' } });
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const page = () => editor.webview('.plane');
const where = async () => (await page()).locator('.where').innerText();
const shows = (what, text) => until(what, async () => (await where()) === text, 20_000);

scenario('the page opens from the command palette and describes the run', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Open Collapse Page');
  await editor.choose('3-collapse quickstart seed 10000');
  await editor.command('View: Close Primary Side Bar');
  const frame = await page();
  await frame.getByText('Reasoning still differs between prompts, but under one prompt it hardly varies.').waitFor();
  await frame.getByText('Validation success fell from 63.0 % (around step 22) to 40.1 %').waitFor();
  await shows('the newest step', 'step 90 of 90');
  await frame.locator('.matrix canvas').waitFor();
  await until('a painted matrix', () => frame.locator('.matrix canvas').evaluate(canvas => canvas.width > 300));
  await editor.keep('collapse-dark');
});

scenario('keys scrub through the diagnoses, and clicking a sign jumps to its step', async () => {
  const frame = await page();
  await frame.locator('h1').click();
  await editor.page.keyboard.press('ArrowLeft');
  await shows('the diagnosis before', 'step 88 of 90');
  await editor.page.keyboard.press('Home');
  await shows('the first diagnosis', 'step 1 of 90');
  await frame.getByText('Reasoning has begun to depend on the prompt.').waitFor();
  await editor.page.keyboard.press('End');
  await shows('the newest step', 'step 90 of 90');
  await frame.getByRole('button', { name: 'go to step 58' }).click();
  await shows('where validation began to fall', 'step 58 of 90');
});

scenario('arrow keys move through the matrix, and Enter opens an episode', async () => {
  const frame = await page();
  await frame.locator('h1').click();
  await editor.page.keyboard.press('End');
  await frame.locator('.matrix-part .at', { hasText: 'step 90' }).waitFor();
  await frame.locator('.matrix canvas').focus();
  await editor.page.keyboard.press('ArrowDown');
  await editor.page.keyboard.press('ArrowRight');
  await frame.getByText(/^Row 2, column 2: log-prob/).waitFor();
  await editor.page.keyboard.press('Home');
  const words = await frame.locator('.cell-words').innerText();
  assert.match(words, /^Row 2, column 1: .* its own prompt/);
  const id = /train-(\S+)(?=,)/.exec(words)[1];
  await editor.page.keyboard.press('Enter');
  const tab = editor.page.getByRole('tab', { name: new RegExp(id.replace(/^0*/, '').split('-').slice(1).join('.*')) });
  await tab.first().waitFor();
  await editor.page.getByRole('tab', { name: /seed 10000 · Collapse/ }).click();
});

scenario('a sentence opens the section of the guide that explains it', async () => {
  const frame = await page();
  await frame.getByRole('button', { name: 'why: collapse' }).first().click();
  await editor.page.getByRole('tab', { name: /METRICS\.md/ }).waitFor();
  await editor.command('View: Close Editor');
});

scenario(
  'a run with every diagnosis shows the filter, gradients and turns; pages are restored after a reload',
  async () => {
    await editor.command('View: Close All Editors');
    await editor.showRuns();
    const tab = editor.page.getByRole('tab', { name: /Collapse/ }).first();
    await editor.takeFromMenu(editor.page.getByRole('treeitem', { name: /^quickstart/ }), 'Open Collapse Page', () =>
      tab.isVisible(),
    );
    await editor.command('View: Close Primary Side Bar');
    let frame = await page();
    await frame.getByText('kept 7 of 12').waitFor();
    await frame.getByText('The task’s gradient rises from 0.252').waitFor();
    await frame.getByRole('button', { name: 'Turns', exact: true }).click();
    await frame.locator('.matrix canvas[aria-label^="Matrix of 48 reasoning texts by 48 prompts"]').waitFor();
    await editor.reload();
    frame = await page();
    await frame.locator('.choice[aria-pressed="true"]', { hasText: 'Turns' }).waitFor();
  },
);

scenario('the page is readable in the other themes', async () => {
  await editor.command('View: Close All Editors');
  await editor.command('RAGEN: Open Collapse Page');
  await editor.choose('3-collapse quickstart seed 10000');
  for (const [theme, name] of [
    ['light', 'collapse-light'],
    ['contrast', 'collapse-contrast'],
  ]) {
    await editor.theme(theme);
    const frame = await page();
    await frame.locator('.ring').waitFor();
    await editor.keep(name);
  }
});
