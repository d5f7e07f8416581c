// The doctor and its report, the walkthrough, and a workspace of two folders.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { makeRuns } from '../fixtures/make-run.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const other = makeWorkspace({ 'notes.md': '# More notes\n' });
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  makeRuns(other);
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  for (const folder of [workspace, other]) rmSync(folder, { recursive: true, force: true });
});

const lines = async () =>
  (await editor.page.locator('.editor-instance .view-lines').first().innerText()).replaceAll('\u00a0', ' ');

/** Opens the walkthrough. Retries, because a page that opens at the same time takes the focus and closes the list. */
async function openWalkthrough() {
  for (let tries = 1; ; tries++) {
    await editor.command('Welcome: Open Walkthrough');
    try {
      return await editor.choose('Train a reasoning agent', 5000);
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

scenario('the doctor lists what is installed and what is missing, and copies its report', async () => {
  await editor.command('RAGEN: Doctor');
  const report = await until('the report', async () => /✓ onnxruntime/.test(await lines()) && lines());
  assert.match(report, /RAGEN Doctor: Runs can start here\./);
  assert.match(report, /✓ Node +\d+\.\d+\.\d+ \(\//);
  assert.match(report, /✓ Permissions +.*\.ragen\/runs/);
  await editor.keep('doctor-dark');
  await editor.page.getByRole('button', { name: 'Copy Doctor Report' }).click();
  await editor.page.locator('.statusbar-item', { hasText: 'copied to the clipboard' }).waitFor();
});

scenario('the walkthrough leads from an empty folder to a custom environment', async () => {
  await openWalkthrough();
  const page = editor.page.locator('.gettingStartedContainer');
  await page.getByText('Edit an environment live').first().waitFor();
  await page.getByText('Check this machine').first().click();
  await page.getByRole('button', { name: 'Run the Doctor' }).waitFor();
  await editor.keep('walkthrough-dark');
  await page.getByRole('button', { name: 'Run the Doctor' }).click();
  await editor.page.getByRole('tab', { name: /RAGEN Doctor/ }).waitFor();
  await openWalkthrough();
  const step = name => page.locator(`.getting-started-step[data-step-id$="#${name}"]`);
  await step('machine').locator('.codicon-getting-started-step-checked').first().waitFor();
  await step('dashboard').locator('.codicon-getting-started-step-unchecked').first().waitFor();
  assert.equal(await step('folder').count(), 0); // the workspace already has a folder
});

scenario('Start Quickstart, the button of an empty Runs view, starts a run and opens its dashboard', async () => {
  await editor.showRuns();
  const sidebar = editor.page.locator('.part.sidebar');
  await sidebar.getByRole('button', { name: 'Start Quickstart' }).click();
  await editor.page.getByRole('tab', { name: /quickstart · Dashboard/ }).waitFor();
  await editor.webview('.top-bar');
  await editor.command('RAGEN: Stop');
  await sidebar.getByRole('treeitem', { name: /^quickstart, .*stopped/ }).waitFor();
});

scenario('a workspace of two folders shows the runs of both', async () => {
  const file = join(workspace, 'two.code-workspace');
  const folders = { folders: [{ path: '.' }, { path: other }] };
  writeFileSync(file, JSON.stringify(folders));
  await editor.open('workspace', file);
  // The editor drops the folders of a workspace if a view is opened before they are loaded. It also drops them if it
  // reads the file at a certain moment while it connects to its server. It reads the file again when the file changes.
  const second = editor.page.locator('.part.sidebar').getByText(basename(other)).first();
  const appears = () =>
    second.waitFor({ timeout: 5000 }).then(
      () => true,
      () => false,
    );
  for (let space = 1; !(await appears()) && space < 20; space++)
    writeFileSync(file, JSON.stringify(folders, null, space % 9));
  await second.waitFor();
  await editor.showRuns();
  const run = editor.page
    .locator('.part.sidebar')
    .getByRole('treeitem', { name: /bandit, .*stopped|bandit, stopped/ })
    .first();
  await run.waitFor();
  await run.click(); // a click opens the dashboard without the palette; the walkthrough was not shown yet
  await editor.webview('canvas');
  await openWalkthrough();
  const steps = editor.page.locator('.gettingStartedContainer');
  const checked = name =>
    steps.locator(`.getting-started-step[data-step-id$="#${name}"] .codicon-getting-started-step-checked`).first();
  await checked('dashboard').waitFor();
  await checked('start').waitFor(); // the step is complete if runs exist
  assert.equal(await checked('collapse').isVisible(), false);
  await run.click();
  await editor.command('RAGEN: Open Collapse Page');
  await openWalkthrough();
  await checked('collapse').waitFor();
  await editor.command('RAGEN: New Run');
  const page = await editor.webview('.estimate-row');
  await page.locator('vscode-dropdown[aria-label="Folder of the run"]').waitFor();
});
