// The Query page in the real editor, on generated runs: an example with its table and chart, an error of the SQL, a
// join with lines in the chart, the result as a CSV file, and the page after a reload of the window.
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { makeRuns } from '../fixtures/make-run.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
let editor;
const scenario = scenarios(() => editor);
before(async () => {
  makeRuns(workspace);
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const page = () => editor.webview('.query');
const run = frame => frame.getByRole('button', { name: 'Run', exact: true }).click();

scenario('the Query page opens from the palette and runs its first example', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Query Runs');
  const frame = await page();
  await run(frame);
  await frame.locator('.query-status', { hasText: /^5 rows in / }).waitFor();
  const names = await frame.locator('.query-table tbody td:first-child').allInnerTexts();
  assert.deepEqual([...names].sort(), ['bandit', 'countdown', 'frozen-lake', 'lake-long', 'sokoban-grpo']);
  await frame.locator('.query-bars li', { hasText: 'sokoban-grpo' }).waitFor();
  await editor.picture('query-dark');
});

scenario('an error of the SQL is shown with the SQL, and a join is drawn as lines', async () => {
  const frame = await page();
  const sql = frame.getByRole('textbox', { name: 'SQL' });
  await sql.fill('SELECT nothing FROM runs');
  await sql.press('Control+Enter');
  await frame.locator('.query-error', { hasText: 'nothing' }).waitFor();
  await sql.fill(
    "SELECT metrics.step, value AS entropy, name FROM metrics JOIN runs USING (run) WHERE key = 'actor/entropy' ORDER BY name, metrics.step",
  );
  await run(frame);
  await frame.locator('.query-status', { hasText: /^85 rows in / }).waitFor();
  assert.equal(await frame.locator('.query-error').count(), 0);
  await frame.locator('.query-legend li', { hasText: 'lake-long' }).waitFor();
  await frame.locator('.query-chart canvas').first().waitFor();
  await editor.picture('query-lines-dark');
});

scenario('the result is saved as CSV, and the SQL is restored after a reload', async () => {
  let frame = await page();
  await frame.getByRole('button', { name: 'Save as CSV' }).click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await editor.page.keyboard.press('Enter');
  const text = await until('the file', () => readFileSync(join(workspace, 'query.csv'), 'utf8'));
  const lines = text.trim().split(/\r?\n/);
  assert.equal(lines.length, 86);
  assert.equal(lines[0], 'step,entropy,name');
  assert.match(lines[1], /^1,[\d.]+,bandit$/);
  await editor.reload();
  frame = await page();
  assert.match(await frame.getByRole('textbox', { name: 'SQL' }).inputValue(), /actor\/entropy/);
});
