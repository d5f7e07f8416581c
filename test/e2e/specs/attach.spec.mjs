// A run of another trainer in the real editor: the command opens verl's files, the dashboard follows them while they
// grow, the Episodes page shows the rollouts and says what verl does not store, commands that need a trainer of this
// product are missing, and the reading of a large step is cancelled.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';
import { root } from '../install.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const elsewhere = mkdtempSync(join(tmpdir(), 'ragen-verl-'));
const source = join(elsewhere, 'lake');
const metrics = join(source, 'verl_examples', 'frozenlake_grpo.jsonl');
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  cpSync(join(root, 'test/golden/foreign-runs/verl'), source, { recursive: true });
  const config = join(source, 'outputs/2026-11-22/10-00-00/.hydra/config.yaml');
  // The run is not finished, so its files are followed.
  writeFileSync(config, readFileSync(config, 'utf8').replace('total_training_steps: 3', 'total_training_steps: 10'));
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  for (const folder of [workspace, elsewhere]) rmSync(folder, { recursive: true, force: true });
});

const runs = () => join(workspace, '.ragen', 'runs');
const listing = () => readdirSync(source, { recursive: true }).sort();

scenario('the command recognises verl, and opens the dashboard of the run', async () => {
  const before = listing();
  await editor.showRuns();
  await editor.command('RAGEN: Open Run of Another Trainer');
  await editor.choose('Type a path');
  await editor.answer(source);
  const page = await editor.webview('.top-bar');
  await page.locator('.facts', { hasText: 'verl' }).waitFor();
  await page.locator('.facts', { hasText: '3 / 10' }).waitFor();
  await page.locator('h1', { hasText: 'frozenlake_grpo' }).waitFor();
  // The command answers before the files are read, so its notification may be hidden again.
  await editor.command('Notifications: Show Notifications');
  const notified = editor.page.locator('.notifications-center .notification-list-item');
  await notified.filter({ hasText: 'token ids, log-probs and advantages' }).waitFor();
  await editor.command('Notifications: Hide Notifications');
  assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0);
  assert.deepEqual(listing(), before);
  await editor.picture('attach-dashboard');
});

scenario('the dashboard follows the file', async () => {
  const page = await editor.webview('.top-bar');
  appendFileSync(metrics, `${JSON.stringify({ step: 4, data: { 'critic/score/mean': 0.9, 'actor/entropy': 0.2 } })}\n`);
  await page.locator('.facts', { hasText: '4 / 10' }).waitFor();
});

scenario('the Episodes page shows the rollouts, and says that verl stores no tokens', async () => {
  await editor.command('RAGEN: Open Episodes');
  const page = await editor.webview('.episode-row');
  await page.getByText('Now two columns are left, so right twice.').first().waitFor();
  await page.locator('.facts', { hasText: 'not stored' }).waitFor();
  await editor.picture('attach-episodes');
  await page.getByRole('button', { name: 'Tokens', exact: true }).click();
  await page.getByText('The trainer stored neither token ids nor log-probs.').first().waitFor();
  await editor.picture('attach-tokens');
});

scenario('the Collapse page offers a diagnosis under a model, and shows it with the model’s name', async () => {
  await editor.command('RAGEN: Open Collapse');
  const page = await editor.webview('.collapse-bar');
  await page.locator('.missing', { hasText: 'verl does not measure' }).first().waitFor();
  await page.getByText('Most frequent thought').first().waitFor();
  await editor.picture('attach-collapse-before');
  await page.getByRole('button', { name: 'Diagnose with a model…' }).first().click();
  await editor.choose('ragen-tiny');
  await editor.answer('1,2,3');
  const scored = await editor.webview('.scorer');
  await scored.locator('.scorer', { hasText: 'scored by ragen-tiny' }).waitFor();
  await scored.locator('run-plane').waitFor();
  await editor.picture('attach-collapse');
});

scenario('the tree names the trainer and offers only what applies; following is ended and started again', async () => {
  await editor.showRuns();
  const item = editor.page.locator('.part.sidebar').getByRole('treeitem', { name: /frozenlake_grpo/ });
  await item.locator('.label-description', { hasText: 'verl' }).waitFor();
  const lease = join(onlyEntry(runs()), 'lease');
  const status = () => JSON.parse(readFileSync(join(onlyEntry(runs()), 'status.json'), 'utf8')).state;
  const ended = () => status() === 'stopped' && !readdirSync(onlyEntry(runs())).includes('lease');
  await editor.takeFromMenu(item, 'Stop Following', ended);
  // A menu that opens before the tree has changed offers the former commands.
  await editor.page
    .locator('.part.sidebar')
    .getByRole('treeitem', { name: /^Stopped/ })
    .waitFor();
  await item.click({ button: 'right' });
  const menu = editor.page.locator('.monaco-menu');
  await menu.locator('.action-menu-item', { hasText: 'Follow Files' }).waitFor();
  for (const missing of ['Resume', 'Fork', 'Evaluate', 'Duplicate'])
    assert.equal(await menu.locator('.action-menu-item', { hasText: missing }).count(), 0, missing);
  await editor.picture('attach-menu');
  await editor.page.keyboard.press('Escape');
  const follows = () => status() === 'running' && readFileSync(lease, 'utf8') !== '';
  await editor.takeFromMenu(item, 'Follow Files', follows);
});

scenario('a run of TRL opens beside the run of verl, and the run table lists both', async () => {
  await editor.command('RAGEN: Open Run of Another Trainer');
  await editor.choose('Type a path');
  await editor.answer(join(root, 'test/golden/foreign-runs/trl/trl-1.16'));
  const dashboard = await editor.webview('.top-bar');
  await dashboard.locator('.facts', { hasText: 'TRL' }).waitFor();
  await editor.command('RAGEN: Open Run Table');
  const table = await editor.webview('.run-table');
  await table.locator('.facts-row', { hasText: '2 runs' }).waitFor();
  await editor.picture('attach-table');
});

scenario('JSON lines with unusual names of fields open with a proposed mapping, which the user corrects', async () => {
  const file = join(elsewhere, 'tries.jsonl');
  const line = i => ({
    ...{ it: Math.ceil(i / 2), riddle: 'How many moves are left?', answer_text: `There are ${i} moves left.` },
    ...{ points: i / 4, cost: 7 },
  });
  writeFileSync(file, [1, 2, 3, 4].map(i => `${JSON.stringify(line(i))}\n`).join(''));
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
  await editor.command('RAGEN: Open Run of Another Trainer');
  // A page that takes the focus does not close the list.
  const table = await editor.webview('.run-table');
  await table.locator('input').first().focus();
  await editor.choose('Type a path');
  await editor.answer(file);
  const rows = editor.page.locator('.quick-input-widget .quick-input-list .monaco-list-row');
  await rows.filter({ hasText: 'Completion' }).filter({ hasText: 'answer_text' }).waitFor();
  await rows.filter({ hasText: 'Open the run with these fields' }).filter({ hasText: 'reward 0.25' }).waitFor();
  await editor.picture('attach-mapping');
  await editor.choose('Prompt group');
  await editor.page.locator('.quick-input-titlebar', { hasText: 'Prompt group · tries.jsonl' }).waitFor();
  await editor.choose('riddle');
  await rows.filter({ hasText: 'Prompt group' }).filter({ hasText: 'riddle' }).waitFor();
  await editor.choose('Open the run with these fields');
  const page = await editor.webview('.top-bar');
  await page.locator('.facts', { hasText: 'JSON lines' }).waitFor();
  const mapping = readFileSync(join(workspace, '.ragen', 'mappings', 'tries.yaml'), 'utf8');
  assert.match(mapping, /^ {2}completion: answer_text$/m);
  assert.match(mapping, /^ {2}group: riddle$/m);
  await editor.command('RAGEN: Open Episodes');
  const episodes = await editor.webview('.episode-row');
  await episodes.getByText('There are 3 moves left.').first().waitFor();
});

scenario('the Episodes page shows pictures of VAGEN’s states', async () => {
  const folder = join(elsewhere, 'vagen');
  cpSync(join(root, 'test/golden/foreign-runs/vagen/rollouts'), folder, { recursive: true });
  await editor.command('RAGEN: Open Run of Another Trainer');
  await editor.choose('Type a path');
  await editor.answer(folder);
  const dashboard = await editor.webview('.top-bar');
  await dashboard.locator('.facts', { hasText: 'VAGEN' }).waitFor();
  await editor.command('RAGEN: Open Episodes');
  const page = await editor.webview('.episode-row');
  const picture = page.locator('.state-picture img').first();
  await picture.waitFor();
  assert.equal(await picture.evaluate(image => image.naturalWidth), 16);
  await editor.picture('attach-pictures');
});

scenario('Cancel ends the reading of a large step, of which nothing half-written is left', async () => {
  const file = join(elsewhere, 'huge.jsonl');
  const line = `${JSON.stringify({ step: 1, prompt: 'x'.repeat(4000), completion: 'two', reward: 1 })}\n`;
  writeFileSync(file, line.repeat(1000));
  for (let i = 0; i < 99; i++) appendFileSync(file, line.repeat(1000));
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
  await editor.command('RAGEN: Open Run of Another Trainer');
  await editor.choose('Type a path');
  await editor.answer(file);
  const reading = editor.page
    .locator('.notification-toast .notification-list-item')
    .filter({ hasText: 'Reading huge' })
    .filter({ hasText: 'rollouts of step 1' });
  await reading.waitFor();
  await editor.picture('attach-reading');
  await reading.getByRole('button', { name: 'Cancel' }).click();
  const [id] = readdirSync(runs()).filter(name => name.includes('huge'));
  const folder = join(runs(), id);
  await until('the end', () => !readdirSync(folder).includes('lease'));
  assert.equal(JSON.parse(readFileSync(join(folder, 'status.json'), 'utf8')).state, 'stopped');
  assert.deepEqual(
    readdirSync(join(folder, 'episodes')).filter(name => name.endsWith('.new')),
    [],
  );
});
