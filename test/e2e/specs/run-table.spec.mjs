// The run table in the real editor, on generated runs: from the palette to a sorted, filtered table; tags and notes are
// edited in place and stored in the run folder; a view is saved; runs are compared and archived from the selection.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { makeRun } from '../fixtures/make-run.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
let editor;
const scenario = scenarios(() => editor);
before(async () => {
  for (let i = 0; i < 30; i++)
    makeRun(workspace, {
      id: `run-${String(i).padStart(2, '0')}`,
      name: `lake ${i}`,
      state: 'finished',
      step: 20,
      seed: i + 1,
      ago_s: 3600 + i * 60,
      groups: 1,
      members: 1,
    });
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const page = () => editor.webview('.run-table');
const file = (id, name) => join(workspace, '.ragen', 'runs', id, name);
const labels = id => JSON.parse(readFileSync(file(id, 'labels.json'), 'utf8'));

scenario('the run table opens from the palette, and is sorted and filtered by a metric', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Open Run Table');
  const table = await page();
  await table.locator('.facts-row', { hasText: '30 runs' }).waitFor();
  await table.locator('thead th', { hasText: 'best' }).locator('.head-sort').click();
  const values = await table.locator('tbody tr:not(.blank) td.number:nth-child(5)').allInnerTexts();
  const numbers = values.map(Number.parseFloat);
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => b - a),
  );
  await table.locator('.filter input').fill('lake-never-named');
  await table.getByText('No matching runs').waitFor();
  await table.locator('.filter input').fill('id:run-0 entropy>0');
  await table.locator('.facts-row', { hasText: '10 of 30 runs' }).waitFor();
  await editor.keep('run-table-dark');
  await editor.theme('light');
  await editor.keep('run-table-light');
  await editor.theme('dark');
});

scenario('tags and notes are edited in place and stored with the run', async () => {
  const table = await page();
  const row = table.locator('tbody tr', { has: table.getByRole('button', { name: 'lake 3', exact: true }) });
  await row.getByRole('button', { name: 'Edit tags of lake 3' }).click();
  await table.locator('input.cell-editor').fill('paper, best');
  await editor.page.keyboard.press('Enter');
  await row.locator('.tag', { hasText: 'best' }).waitFor();
  assert.deepEqual(labels('run-03').tags, ['paper', 'best']);
  await row.getByRole('button', { name: 'Edit notes of lake 3' }).click();
  await table.locator('textarea.cell-editor').fill('higher entropy than the others');
  await editor.page.keyboard.press('Control+Enter');
  await row.getByText('higher entropy than the others').waitFor();
  assert.equal(readFileSync(file('run-03', 'notes.md'), 'utf8'), 'higher entropy than the others');
});

scenario('the colour of a run is chosen in the table, and stored with the run', async () => {
  const table = await page();
  await table.getByRole('button', { name: 'Colour of lake 3', exact: true }).click();
  await table.getByRole('menuitemcheckbox', { name: 'Yellow' }).click();
  await until('the stored colour', () => labels('run-03').colour === 'yellow');
  assert.deepEqual(labels('run-03').tags, ['paper', 'best']);
});

scenario('a view is saved and applied, and selected runs are archived after a confirmation', async () => {
  let table = await page();
  await table.getByRole('button', { name: 'Views' }).click();
  await table.getByRole('menuitem', { name: 'Save view as…' }).click();
  await editor.answer('first ten');
  await table.getByRole('button', { name: 'View: first ten' }).waitFor();
  await table.locator('.filter input').fill('');
  await table.locator('.facts-row', { hasText: '30 runs' }).waitFor();
  await editor.reload();
  table = await page();
  await table.getByRole('button', { name: 'View: first ten, changed' }).click();
  await table.getByRole('menuitemcheckbox', { name: 'first ten' }).click();
  await table.locator('.facts-row', { hasText: '10 of 30 runs' }).waitFor();
  await table.getByRole('checkbox', { name: 'Select lake 1', exact: true }).click();
  await table.getByRole('checkbox', { name: 'Select lake 2', exact: true }).click();
  await table.getByRole('button', { name: 'Archive…' }).click();
  await editor.page.locator('.monaco-dialog-box').getByRole('button', { name: 'Archive', exact: true }).click();
  await table.locator('.facts-row', { hasText: '8 of 28 runs' }).waitFor();
  await until('the archived label', () => existsSync(file('run-01', 'labels.json')) && labels('run-01').archived);
});
