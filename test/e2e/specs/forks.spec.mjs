// A run that starts leaves the focus where the user is. A finished run is forked from an earlier checkpoint: the picker
// describes the checkpoints, the form shows the settings at the checkpoint, the question names what a resume would
// discard, and the fork names its parent.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);
before(async () => (editor = await Editor.start(workspace)));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const runs = join(workspace, '.ragen', 'runs');
const read = (id, name) => JSON.parse(readFileSync(join(runs, id, name), 'utf8'));
const rows = () => editor.page.locator('.quick-input-widget .quick-input-list .monaco-list-row');
const small = [
  ...['trainer.total_training_steps=3', 'trainer.save_freq=1', 'workbench.keep_checkpoints=9'],
  ...['workbench.threads=1', 'trainer.val_before_train=false', 'trainer.test_freq=-1'],
];

scenario('a start does not take the focus from a list that the user opened meanwhile', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Start Run');
  await editor.choose('quickstart');
  await editor.answer(small.join(' '));
  await editor.command('RAGEN: Start Run');
  const input = editor.page.locator('.quick-input-widget input.input');
  await input.waitFor();
  assert.equal(await editor.page.getByRole('tab', { name: /quickstart · Dashboard/ }).count(), 0); // the start is pending
  await editor.page.getByRole('tab', { name: /quickstart · Dashboard/ }).waitFor();
  await editor.webview('.top-bar, canvas');
  await editor.page.keyboard.type('bandit');
  await editor.page
    .locator('.quick-input-widget .quick-input-list .monaco-list-row', { hasText: 'bandit' })
    .first()
    .waitFor();
  assert.equal(await input.inputValue(), 'bandit');
  await editor.page.keyboard.press('Escape');
});

scenario('Fork from Checkpoint opens the form, whose changes apply to the fork', async () => {
  const [id] = await until('the run', () => readdirSync(runs));
  await until('its end', () => read(id, 'status.json').state === 'finished', 400_000);
  await editor.command('RAGEN: Fork from Checkpoint');
  await until('the checkpoints', async () => (await rows().count()) === 3);
  await editor.choose('Step 2');
  const form = await editor.webview('.form-bar');
  await form.locator('.yaml', { hasText: /resume_from_path: .*step-000002/ }).waitFor();
  assert.match(await form.locator('.form > p').first().innerText(), /continues from step 2 of run quickstart/);
  const field = key => form.locator(`.field[data-key="${key}"] vscode-text-field input`);
  assert.equal(await field('trainer.experiment_name').inputValue(), 'quickstart-from-2');
  await field('trainer.experiment_name').fill('branch');
  await form.locator('.yaml', { hasText: 'experiment_name: branch' }).waitFor();
  await editor.picture('fork-form-dark');
  await form.getByRole('button', { name: 'Start run' }).click();
  const fork = await until('the fork', () => readdirSync(runs).find(name => name !== id));
  await until('its end', () => read(fork, 'status.json').state === 'finished', 400_000);
  assert.deepEqual(read(fork, 'manifest.json').parent, { run: id, step: 2 });
  assert.equal(read(fork, 'manifest.json').name, 'branch');
  assert.equal(read(fork, 'status.json').step, 3);
});

scenario('a resume from an earlier checkpoint asks first, and Fork as new run keeps the run', async () => {
  const [id] = await until('the run', () => readdirSync(runs));
  await until('its end', () => read(id, 'status.json').state === 'finished', 400_000);
  const before = readdirSync(runs);
  await editor.page.getByRole('treeitem', { name: /^quickstart/ }).click();
  await editor.webview('h1:text-is("quickstart")');
  await editor.command('RAGEN: Resume from Checkpoint');
  await until('the checkpoints', async () => (await rows().count()) === 3);
  const shown = await rows().allInnerTexts();
  assert.match(shown[0], /Step 3[\s\S]*no validation · .* · [\d.]+ MB · newest/);
  await editor.picture('checkpoints-dark');
  await editor.choose('Step 1');
  await until('the question', async () => (await rows().count()) === 2);
  const [fork, discard] = await rows().allInnerTexts();
  assert.match(fork, /^\s*Fork as new run[\s\S]*quickstart keeps 2 steps \(2 to 3\), 2 checkpoints and \d+ events/);
  assert.match(discard, /^\s*Discard and resume/);
  await editor.picture('discard-question-dark');
  await editor.choose('Fork as new run');
  const other = await until('the fork', () => readdirSync(runs).find(name => !before.includes(name)));
  await until('its manifest', () => read(other, 'manifest.json').parent);
  assert.deepEqual(read(other, 'manifest.json').parent, { run: id, step: 1 });
  await editor.page.getByRole('treeitem', { name: /quickstart-from-1.*fork of quickstart, step 1/ }).waitFor();
  assert.equal(read(id, 'status.json').step, 3);
  await until('its end', () => read(other, 'status.json').state === 'finished', 400_000);
});
